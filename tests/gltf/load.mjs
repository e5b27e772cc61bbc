// What the programs that use three's loader share.

import { readFile } from "node:fs/promises";
import { Texture } from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

/** Stand in for pictures: decoding them needs a browser, and no vertex depends on one. */
function withoutPictures() {
  return { name: "without_pictures", loadTexture: async () => new Texture() };
}

/** Load a GLB file; plugins are functions of the loader's parser. */
export async function load(file, ...plugins) {
  const bytes = await readFile(file);
  if (bytes.toString("latin1", 0, 4) !== "glTF") throw new Error("not a GLB file");
  const loader = new GLTFLoader();
  for (const plugin of [withoutPictures, ...plugins]) loader.register(plugin);
  return loader.parseAsync(new Uint8Array(bytes).buffer, "");
}

/** Return the index of a node in the file. three renames nodes, so its own names are of no use. */
export function indexOf(nodes, wanted) {
  const found = nodes.flatMap((node, i) => (node.name === wanted || i === wanted ? [i] : []));
  if (found.length !== 1) throw new Error(`${found.length} nodes are called ${wanted}`);
  return found[0];
}

/** Keep what is said on the console in a list, and return the list. */
export function keepWarnings() {
  const warnings = [];
  console.log = console.warn = console.error = (...words) => warnings.push(words.join(" "));
  return warnings;
}

/** Answer a JSON list of jobs on stdin with a JSON list of results. */
export async function answer(work, warnings) {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
  const results = [];
  for (const job of JSON.parse(text)) {
    try {
      results.push(await work(job));
    } catch (error) {
      process.stderr.write(`${job.file}: ${[error.message ?? error, ...warnings].join("; ")}\n`);
      process.exit(1);
    }
  }
  process.stdout.write(JSON.stringify(results));
}
