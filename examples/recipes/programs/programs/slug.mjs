import { readFileSync } from "node:fs";

const { title } = JSON.parse(readFileSync(0, "utf8"));
const plain = title.normalize("NFKD").replace(/\p{Mark}/gu, "").toLowerCase();
console.log(plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, ""));
