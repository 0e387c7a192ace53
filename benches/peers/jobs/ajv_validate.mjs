// Validates COUNT times with ajv. Arguments: validate|parse COUNT SCHEMA ARGUMENTS.
import { readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";

const [job, count, schema, file] = process.argv.slice(2);
const validate = new Ajv.default().compile(JSON.parse(readFileSync(schema, "utf8")));
const text = readFileSync(file, "utf8");
const parsed = JSON.parse(text);
for (let done = 0; done < Number(count); done++) {
  if (!validate(job === "parse" ? JSON.parse(text) : parsed)) throw new Error("invalid");
}
