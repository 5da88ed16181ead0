// The manifests give the rights that the start of the service and `doctor` ask for, and no others.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { NEEDED_RIGHTS } from '../../../drivers/workload/kubernetes/fingerprint';
import { ROOT } from '../../support/runner/repository';

interface Role {
  kind: string;
  metadata: { name: string };
  rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

const objects = parseAllDocuments(readFileSync(path.join(ROOT, 'docs/kubernetes/rights.yaml'), 'utf8')).map(
  (document) => document.toJS() as Role,
);

function givenBy(name: string): string[] {
  const role = objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name) as Role;
  const each = role.rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group} ${resource}`))),
  );
  return each.sort();
}

test('the ClusterRole of the worker is what it needs', () => {
  const needed = NEEDED_RIGHTS.map(
    ({ verb, group = '', resource, subresource }) =>
      `${verb} ${group} ${subresource ? `${resource}/${subresource}` : resource}`,
  );
  expect(givenBy('platform-api')).toEqual([...needed].sort());
});

test('processes of the API have a part of it', () => {
  const whole = new Set(givenBy('platform-api'));
  expect(givenBy('platform-api-attach').filter((right) => !whole.has(right))).toEqual([]);
  expect(givenBy('platform-api-attach').some((right) => / secrets$/.test(right))).toBe(false);
});

test('an ingress may follow pods, and nothing else', () => {
  expect(givenBy('platform-api-ingress')).toEqual(['list  pods', 'watch  pods']);
});
