// Validate glTF files with Khronos' validator: node validate.mjs FILE...
//
// Prints one JSON object that maps each file, as it was named, to its report.

import { realpath, readFile } from "node:fs/promises";
import path from "node:path";
import validator from "gltf-validator";

const SEVERITIES = ["error", "warning", "information", "hint"];

/** Return a reader of the buffers and pictures beside a file: what lies elsewhere is refused. */
function readerBeside(file) {
  return async (uri) => {
    const folder = await realpath(path.dirname(file));
    const found = await realpath(path.resolve(folder, decodeURIComponent(uri)));
    const inside = path.relative(folder, found);
    if (inside.split(path.sep)[0] === ".." || path.isAbsolute(inside)) {
      throw new Error(`${uri} is outside the file's folder`);
    }
    return new Uint8Array(await readFile(found));
  };
}

async function report(file) {
  const bytes = new Uint8Array(await readFile(file));
  const said = await validator.validateBytes(bytes, {
    uri: path.basename(file),
    externalResourceFunction: readerBeside(file),
    writeTimestamp: false,
    maxIssues: 0, // No limit: the numbers below count only what is listed.
  });
  return {
    validatorVersion: said.validatorVersion,
    numErrors: said.issues.numErrors,
    numWarnings: said.issues.numWarnings,
    numInfos: said.issues.numInfos,
    numHints: said.issues.numHints,
    issues: said.issues.messages.map(({ code, severity, message, pointer, offset }) => ({
      code,
      severity: SEVERITIES[severity],
      message,
      // What is wrong with a GLB's own layout has a place in bytes instead of one in the JSON.
      pointer: pointer ?? null,
      offset: offset ?? null,
    })),
    info: said.info ?? null,
  };
}

const reports = {};
for (const file of process.argv.slice(2)) {
  try {
    reports[file] = await report(file);
  } catch (error) {
    console.error(`${file}: ${error.message ?? error}`);
    process.exitCode = 1;
  }
}
process.stdout.write(JSON.stringify(reports));
