// Pose skinned meshes with three's loader and skinning: node pose.mjs < JOBS
//
// JOBS is a JSON list of {"file", "node", "poses"}. "node" is the node of the mesh to pose, by
// its name in the file or its index; null takes the only skinned one. A pose is a list of pairs
// of a node, named the same ways, and the local rotation [x, y, z, w] that it gets; [] is the
// pose that the file is in.
//
// Prints a JSON list with one object for each job: "positions", of every vertex in world space,
// nested as [primitive][pose][vertex][x, y, z], and "warnings", what three had to say about the
// file.

import { Vector3 } from "three";
import { answer, indexOf, keepWarnings, load } from "./load.mjs";

const warnings = keepWarnings();

function onlySkinned(nodes) {
  const found = nodes.flatMap((node, i) => (node.skin === undefined ? [] : [i]));
  if (found.length !== 1) throw new Error(`${found.length} skinned nodes: name the one to pose`);
  return found[0];
}

/** Return a node's skinned meshes in the order of the file's primitives. */
async function skinnedMeshes({ parser }, index) {
  const { nodes, meshes } = parser.json;
  if (nodes[index].skin === undefined) throw new Error(`node ${index} has no skin`);
  const { primitives } = meshes[nodes[index].mesh];
  if (primitives.some(({ attributes }) => "JOINTS_1" in attributes)) {
    throw new Error("three takes four joints to a vertex and would leave JOINTS_1 out");
  }
  // Several primitives become a group with a mesh for each, among the node's own children.
  const object = await parser.getDependency("node", index);
  const own = [object, ...object.children].filter((part) => {
    const from = parser.associations.get(part);
    return part.isSkinnedMesh && (part === object || from?.nodes === undefined);
  });
  if (own.length !== primitives.length) {
    throw new Error(`three skins ${own.length} of ${primitives.length} primitives`);
  }
  return own;
}

function positionsNow(mesh) {
  const { position } = mesh.geometry.attributes;
  const point = new Vector3();
  return Array.from({ length: position.count }, (_, i) => {
    // Not getVertexPosition: that would add the morph targets.
    mesh.applyBoneTransform(i, point.fromBufferAttribute(position, i));
    return point.applyMatrix4(mesh.matrixWorld).toArray();
  });
}

async function posed({ file, node, poses }) {
  const gltf = await load(file);
  const { nodes } = gltf.parser.json;
  const index = node === null ? onlySkinned(nodes) : indexOf(nodes, node);
  const meshes = await skinnedMeshes(gltf, index);
  const positions = meshes.map(() => []);
  for (const pose of poses) {
    const before = [];
    for (const [name, quaternion] of pose) {
      const joint = await gltf.parser.getDependency("node", indexOf(nodes, name));
      before.push([joint, joint.quaternion.clone()]);
      joint.quaternion.fromArray(quaternion);
    }
    // The skinning multiplies the joints' world matrices itself: no skeleton.update() is needed.
    // The mesh's own bind matrix, "attached", follows its node in updateMatrixWorld.
    for (const scene of gltf.scenes) scene.updateMatrixWorld(true);
    meshes.forEach((mesh, i) => positions[i].push(positionsNow(mesh)));
    for (const [joint, quaternion] of before) joint.quaternion.copy(quaternion);
  }
  return { positions, warnings: warnings.splice(0) };
}

await answer(posed, warnings);
