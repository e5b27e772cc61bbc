// Time three-vrm's spring bones: node springs_bench.mjs [UPDATES] [CHAINS] [BONES]
//
// Chains of bones hang from a head that nods, one sphere for all to keep off, nothing loaded and
// nothing drawn. Prints JSON: "chains", "bones", "updates", and "median_ms" of an update.

import {
  VRMSpringBoneCollider,
  VRMSpringBoneColliderShapeSphere,
  VRMSpringBoneJoint,
  VRMSpringBoneManager,
} from "@pixiv/three-vrm-springbone";
import { Object3D, Vector3 } from "three";

const LENGTH = 0.06;
const RADIUS = 0.1;

const [updates = 300, chains = 1000, bones = 4] = process.argv.slice(2).map(Number);

const head = new Object3D();
const shape = new VRMSpringBoneColliderShapeSphere({ radius: RADIUS, offset: new Vector3() });
const collider = new VRMSpringBoneCollider(shape);
head.add(collider);
const groups = [{ name: "head", colliders: [collider] }];
const manager = new VRMSpringBoneManager();
for (let chain = 0; chain < chains; chain++) {
  const angle = (2 * Math.PI * chain) / chains;
  let bone = new Object3D();
  bone.position.set(RADIUS * Math.cos(angle), 0, RADIUS * Math.sin(angle));
  head.add(bone);
  for (let number = 0; number < bones; number++) {
    const child = new Object3D();
    child.position.set(0, -LENGTH, 0);
    bone.add(child);
    const settings = {
      hitRadius: 0.1 * LENGTH,
      stiffness: (60 * LENGTH * 0.1) / 0.9,
      gravityPower: 9.81 / 60,
      dragForce: 0.08,
    };
    manager.addJoint(new VRMSpringBoneJoint(bone, child, settings, groups));
    bone = child;
  }
}
head.updateMatrixWorld(true);
manager.setInitState();

const times = [];
// The first updates are slower: the engine compiles what they run.
const warm = Math.min(60, updates);
for (let frame = 0; frame < warm + updates; frame++) {
  head.rotation.x = 0.4 * Math.sin(frame / 10);
  const start = performance.now();
  manager.update(1 / 60);
  if (frame >= warm) times.push(performance.now() - start);
}
const place = new Vector3();
for (const { child } of manager.joints) {
  const { x, y, z } = place.setFromMatrixPosition(child.matrixWorld);
  if (!Number.isFinite(x + y + z)) throw new Error("a bone is nowhere");
}
times.sort((a, b) => a - b);
const middle = times.length >> 1;
const median = times.length % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
process.stdout.write(JSON.stringify({ chains, bones, updates, median_ms: median }));
