// What somebody changed, told from what the platform changes itself.
import type { Deployment } from 'kubernetes-types/apps/v1';
import { workloadObjects } from '../../../drivers/workload/kubernetes/deployment';
import { correctedFields, withDigest } from '../../../drivers/workload/kubernetes/drift';
import { workloadSample } from '../../support/kubernetes/workload_sample';

const applied = withDigest(workloadObjects('platform', workloadSample()).deployment);
const edited = (change: (copy: Deployment) => void): Deployment => {
  const copy = structuredClone(applied);
  change(copy);
  return copy;
};

test('fields that differ from what was applied last are named, lists without positions', () => {
  const present = edited(({ spec }) => {
    const container = spec?.template.spec?.containers[0];
    if (!spec || !container) throw new Error('a Deployment without a container');
    spec.replicas = 7;
    container.image = 'other';
  });
  expect(correctedFields(present, applied, applied).sort()).toEqual([
    'spec.replicas',
    'spec.template.spec.containers.image',
  ]);
});

test("what the platform changes itself is nobody else's work", () => {
  const next = withDigest(workloadObjects('platform', workloadSample({ instances: 5 })).deployment);
  expect(correctedFields(applied, next, next)).toEqual([]);
  expect(correctedFields(applied, applied, applied)).toEqual([]);
});

test('of a Deployment without the annotation nothing is known', () => {
  const present = edited(({ metadata, spec }) => {
    delete metadata?.annotations;
    if (spec) spec.replicas = 7;
  });
  expect(correctedFields(present, applied, applied)).toEqual([]);
});
