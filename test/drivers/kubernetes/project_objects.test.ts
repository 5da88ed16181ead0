// The ceilings of a project's namespace, what a refusal means in words, and when a namespace may go.
import { loadConfig } from '../../../core/config';
import { driverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { listProjects, removeProject } from '../../../drivers/workload/kubernetes/project_removal';
import { ensureProject } from '../../../drivers/workload/kubernetes/namespace';
import {
  aboveUse,
  projectLimits,
  projectQuota,
  refusalSentence,
} from '../../../drivers/workload/kubernetes/project_quota';
import { resourcesOf } from '../../../drivers/workload/kubernetes/deployment';
import { projectRoom } from '../../../server/platform/cluster';
import { oddApiServer, respond, statusOf, type OddApiServer } from '../../support/kubernetes/odd_api_server';

const hardOf = (quotas: object): Record<string, string> =>
  projectQuota('platform', 'prj_1', projectRoom(loadConfig({ QUOTAS: JSON.stringify(quotas) }))).spec?.hard ?? {};

describe('the quota of a namespace', () => {
  test('has room for the old and the new release of all that a project may have, and for runs', () => {
    const hard = hardOf({ applications: 1, previews: 0, runs: 3, volumes: 2, volume_storage_gb: 10 });
    // 50 process types of 20 instances, twice; a release command; runs, and those that end.
    expect(hard).toEqual({
      pods: String(2 * 50 * 20 + 1 + 6),
      'limits.memory': `${2_007 * 4096}Mi`,
      'limits.cpu': String(2_007 * 4),
      persistentvolumeclaims: '4',
      'requests.storage': '20Gi',
    });
  });

  test('does not limit what is unlimited', () => {
    expect(Object.keys(hardOf({ runs: null, volumes: null }))).toEqual(['requests.storage']);
  });

  test('is above what is in use already, so that lowered quotas stop nothing', () => {
    const hard = { pods: '10', 'limits.memory': '4096Mi', 'limits.cpu': '8' };
    expect(aboveUse(hard, { pods: '8', 'limits.memory': '1Gi', 'limits.cpu': '4500m' })).toEqual({
      ...{ pods: '16', 'limits.memory': '4096Mi', 'limits.cpu': '9' },
    });
    expect(aboveUse(hard, {})).toEqual(hard);
  });

  test('containers of the platform need none of the defaults', () => {
    const [limit] = projectLimits('platform', 'prj_1', projectRoom(loadConfig({}))).spec?.limits ?? [];
    expect(limit).toMatchObject({ type: 'Container', default: { memory: '256Mi', cpu: '250m' } });
    expect(limit).not.toHaveProperty('max');
    const { requests, limits } = resourcesOf({ limits: { memory_mb: 512, cpus: 1, disk_mb: null } });
    for (const named of Object.keys(limit?.default ?? {}))
      expect([requests?.[named], limits?.[named]].every(Boolean)).toBe(true);
  });
});

test('a refusal by a quota is told in words; others as they are', () => {
  const said =
    'pods "shop-web-1a-x" is forbidden: exceeded quota: team, requested: limits.memory=512Mi,pods=1, ' +
    'used: limits.memory=1Gi,pods=2, limited: limits.memory=1Gi,pods=2';
  expect(refusalSentence(said, 'its instances')).toBe(
    'The cluster refuses its instances: the quota `team` of its namespace would be exceeded ' +
      '(limits.memory: 512Mi more, 1Gi of 1Gi in use; pods: 1 more, 2 of 2 in use).',
  );
  expect(refusalSentence('pods "a" is forbidden: no.', 'its pods')).toBe('The cluster refuses its pods: no.');
  // Each attempt is for a pod of another name.
  expect(refusalSentence('pods "b-x2x4z" is forbidden: no.', 'its pods')).toBe('The cluster refuses its pods: no.');
  expect(refusalSentence('a webhook said\u0000\nno', 'its pods')).toBe(
    'The cluster refuses its pods: a webhook said no.',
  );
});

describe('a namespace', () => {
  let api: OddApiServer;
  let client: KubernetesClient;
  oddApiServer((opened) => ({ api, client } = opened));
  const own = { 'platform-api/installation': 'platform', 'platform-api/project': 'prj_1' };
  const namespace = (labels: object, more: object = {}) => ({
    metadata: { name: 'platform-prj-1', uid: 'uid-1', labels, ...more },
  });
  /** @param items by the plural of their kind */
  const holds = (present: object, items: Record<string, object[]>): void =>
    api.answer(({ method, url: { pathname } }, response) => {
      if (method === 'DELETE' || pathname.endsWith('/platform-prj-1')) return respond(response, 200, present);
      if (pathname.endsWith('/namespaces')) return respond(response, 200, { metadata: {}, items: [present] });
      respond(response, 200, { metadata: {}, items: items[pathname.split('/').at(-1) ?? ''] ?? [] });
    });
  const remove = () => removeProject({ client, prefix: 'platform' }, 'prj_1', driverContext(5_000));
  const removals = (): string[] => api.requests.filter(({ method }) => method === 'DELETE').map(({ body }) => body);

  test('goes with what the platform and the cluster have put into it, by its uid', async () => {
    holds(namespace(own), {
      secrets: [
        { metadata: { name: 'a', labels: own } },
        { metadata: { name: 't' }, type: 'kubernetes.io/service-account-token' },
      ],
      configmaps: [{ metadata: { name: 'kube-root-ca.crt' } }],
    });
    expect(await remove()).toBeNull();
    expect(removals()).toEqual([expect.stringContaining('"preconditions":{"uid":"uid-1"}')]);
  });

  test.each([
    ['pods', [{ metadata: { name: 'x', labels: own } }], 'the Pod x.'],
    ['persistentvolumeclaims', [{ metadata: { name: 'x', labels: own } }], 'the PersistentVolumeClaim x.'],
    ['statefulsets', [{ metadata: { name: 'x' } }], 'the StatefulSet x, which this platform did not create.'],
    ['services', [{ metadata: { name: 'x' } }], 'the Service x, which this platform did not create.'],
    [
      'secrets',
      [{ metadata: { name: 'x', labels: { ...own, 'platform-api/installation': 'o' } } }],
      'the Secret x, which',
    ],
  ])('stays while it has %s that keep it', async (plural, items, reason) => {
    holds(namespace(own), { [plural]: items });
    expect(await remove()).toContain(reason);
    expect(removals()).toEqual([]);
  });

  test('of somebody else is left alone, and so is one that is ending', async () => {
    holds(namespace({}), {});
    expect(await remove()).toContain('not of this installation');
    holds(namespace(own, { deletionTimestamp: '2026-01-01T00:00:00Z' }), {});
    expect(await remove()).toBeNull();
    expect(removals()).toEqual([]);
  });

  test('with our labels and another name is none of ours', async () => {
    const list = () => listProjects({ client, prefix: 'platform' }, driverContext(5_000));
    holds(namespace(own), {});
    expect(await list()).toEqual([{ project_id: 'prj_1', name: 'platform-prj-1', leaving_since: null, reason: null }]);
    holds({ metadata: { name: 'kube-system', labels: own } }, {});
    expect(await list()).toEqual([]);
  });

  test('does without a quota where the rights for it are missing', async () => {
    api.answer(({ url: { pathname }, body }, response) => {
      if (!pathname.includes('resourcequotas')) return respond(response, 200, body || namespace(own));
      respond(response, 403, statusOf(403, 'Forbidden', 'User "worker" cannot get resource "resourcequotas"'));
    });
    const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };
    const room = projectRoom(loadConfig({}));
    const options = { client, prefix: 'platform', networks, room };
    // The policy of the network is read as one of ours, too.
    await expect(ensureProject(options, 'prj_1', driverContext(5_000))).resolves.toBeUndefined();
  });
});
