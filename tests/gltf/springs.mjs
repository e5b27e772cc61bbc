// Run spring bones by three-vrm: node springs.mjs < JOBS
//
// JOBS is a JSON list of {"file", "frames", "rate", "node", "turns"}: how many frames to run, how
// many of them a second has, and the local rotation [x, y, z, w] that a node (by its name in the
// file or its index) gets before each frame; when the list is at its end, the last one stays. A
// VRM 1.0 avatar is loaded as one, and any other file with spring bones as they are.
//
// Prints a JSON list with one object for each job: "nodes", the indices of all springs' joints in
// the file's order, tails too; "positions", where they are in world space, nested as
// [frame][joint][x, y, z], before the first frame and after each; "moved", how many of the joints
// three-vrm moves; and "warnings", what was said about the file. A number that is none is null.

import { VRMLoaderPlugin } from "@pixiv/three-vrm";
import { VRMSpringBoneLoaderPlugin } from "@pixiv/three-vrm-springbone";
import { Vector3 } from "three";
import { answer, indexOf, keepWarnings, load } from "./load.mjs";

const warnings = keepWarnings();

/** Use the plugin that fits: an avatar's wants a humanoid. */
function springPlugin(parser) {
  const avatar = parser.json.extensions?.VRMC_vrm !== undefined;
  return avatar ? new VRMLoaderPlugin(parser) : new VRMSpringBoneLoaderPlugin(parser);
}

async function sprung({ file, frames, rate, node, turns }) {
  const gltf = await load(file, springPlugin);
  const { parser, userData, scenes } = gltf;
  const { nodes, extensions } = parser.json;
  const manager = userData.vrm?.springBoneManager ?? userData.vrmSpringBoneManager;
  if (!manager) throw new Error("three-vrm finds no spring bones");
  // Else the avatar's own pose is put over the rotations that are given here.
  if (userData.vrm) userData.vrm.humanoid.autoUpdateHumanBones = false;
  const { springs } = extensions.VRMC_springBone;
  const rows = springs.flatMap(({ joints }) => joints.map((joint) => joint.node));
  const objects = await Promise.all(rows.map((row) => parser.getDependency("node", row)));
  const turned = await parser.getDependency("node", indexOf(nodes, node));
  const places = () => {
    for (const scene of scenes) scene.updateMatrixWorld(true);
    return objects.map(({ matrixWorld }) => new Vector3().setFromMatrixPosition(matrixWorld));
  };
  const before = places();
  // The loader reads where tails are before anybody has computed where nodes are.
  manager.reset();
  const positions = [before.map((place) => place.toArray())];
  for (let frame = 0; frame < frames; frame++) {
    const turn = turns[Math.min(frame, turns.length - 1)];
    if (turn) turned.quaternion.fromArray(turn);
    (userData.vrm ?? manager).update(1 / rate);
    positions.push(places().map((place) => place.toArray()));
  }
  const moved = manager.joints.size;
  return { nodes: rows, positions, moved, warnings: warnings.splice(0) };
}

await answer(sprung, warnings);
