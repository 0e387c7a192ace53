// Opens a project in VS Code until the extension in `features` has written its result.
// Arguments: the project, the folder of the extensions, the folder of the user data, the file of the result.
import { existsSync } from "node:fs";
import { startWorkbench } from "./workbench.js";

const [project, extensions, data, result] = process.argv.slice(2);
const workbench = await startWorkbench(extensions!, data!, ["--disable-workspace-trust"]);
try {
  await workbench.open(project!);
  for (let attempts = 0; !existsSync(result!); attempts++) {
    if (attempts === 6_000) throw new Error(`no result; see ${data}/failure.png`);
    await workbench.page.waitForTimeout(50);
  }
} catch (error) {
  await workbench.page.screenshot({ path: `${data}/failure.png` });
  throw error;
} finally {
  await workbench.close();
}
