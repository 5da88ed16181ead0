// Whether all of a workload is as it should be, from lists of all workloads.
import { driverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import type { KubernetesObject } from '../../../drivers/kubernetes/client/resource_type';
import { workloadObjects, type WorkloadObjects } from '../../../drivers/workload/kubernetes/deployment';
import { withDigest } from '../../../drivers/workload/kubernetes/drift';
import { isPartOf, openOverview } from '../../../drivers/workload/kubernetes/overview';
import { oddApiServer, respond, type OddApiServer } from '../../support/kubernetes/odd_api_server';
import { workloadSample } from '../../support/kubernetes/workload_sample';

let api: OddApiServer;
let client: KubernetesClient;
oddApiServer((opened) => ({ api, client } = opened));

const ctx = () => driverContext(10_000);
const YEAR_MS = 365 * 86_400_000;

function desired(id: string): WorkloadObjects {
  const sample = workloadSample();
  const ends_at = new Date(Date.now() + YEAR_MS).toISOString();
  const image = { ...sample.image, login: { ...sample.image.login, ends_at } };
  const reaches = [{ address: '192.0.2.1', port: 1 }];
  const objects = workloadObjects('platform', workloadSample({ id, image, reaches }));
  return { ...objects, deployment: withDigest(objects.deployment) };
}

/** Lists have these objects, by the last part of their path. */
function serve(all: WorkloadObjects[]): void {
  const lists: Record<string, (KubernetesObject | null)[]> = {
    deployments: all.map(({ deployment }) => deployment),
    secrets: all.flatMap(({ variables, pull, documents }) => [variables, pull, documents]),
    networkpolicies: all.map(({ egress }) => egress),
    poddisruptionbudgets: all.map(({ disruption }) => disruption),
  };
  api.answer(({ url }, response) => {
    const items = lists[url.pathname.split('/').at(-1) ?? ''] ?? [];
    respond(response, 200, { metadata: { resourceVersion: '1' }, items: items.filter(Boolean) });
  });
}

test('four lists tell it of any number of workloads', async () => {
  const all = Array.from({ length: 50 }, (_, index) => desired(`wkl_${index}`));
  serve(all);
  const overview = openOverview({ client, prefix: 'platform' });
  const found = await Promise.all(all.map((one, index) => overview.unchanged(`wkl_${index}`, one, ctx())));
  expect(found.every((deployment) => deployment !== null)).toBe(true);
  expect(api.requests).toHaveLength(4);
});

test('of long values digests are kept, and others are noticed all the same', async () => {
  const sample = workloadSample();
  const ends_at = new Date(Date.now() + YEAR_MS).toISOString();
  const image = { ...sample.image, login: { ...sample.image.login, ends_at, password: 'p'.repeat(2_000) } };
  const documents = [{ path: '/platform/trust/bundle.pem', text: 'x'.repeat(100_000) }];
  const made = workloadObjects('platform', workloadSample({ image, documents, env: { LONG: 'y'.repeat(50_000) } }));
  const objects = { ...made, deployment: withDigest(made.deployment) };
  const readUnchanged = () => openOverview({ client, prefix: 'platform' }).unchanged('wkl_1', objects, ctx());
  serve([structuredClone(objects)]);
  expect(await readUnchanged()).not.toBeNull();
  for (const name of ['documents', 'variables'] as const) {
    const present = structuredClone(objects);
    const [[key, value] = ['', '']] = Object.entries(present[name]?.data ?? {});
    Object.assign(present[name]?.data ?? {}, { [key]: `${value.slice(0, -4)}AAAA` });
    serve([present]);
    expect([name, await readUnchanged()]).toEqual([name, null]);
  }
});

test('each object that is absent, or another, is noticed', async () => {
  const objects = desired('wkl_1');
  const others: Partial<Record<keyof WorkloadObjects, (object: KubernetesObject) => void>> = {
    variables: (object) => Object.assign(object, { data: { A: 'Yw==' } }),
    pull: (object) => delete object.metadata?.annotations,
    egress: (object) => Object.assign(object, { spec: {} }),
    disruption: (object) => delete object.metadata?.labels,
    deployment: (object) => Object.assign((object as WorkloadObjects['deployment']).spec ?? {}, { replicas: 7 }),
  };
  for (const [name, change] of Object.entries(others)) {
    const present = structuredClone(objects);
    change(present[name as keyof WorkloadObjects] as KubernetesObject);
    serve([present]);
    const overview = openOverview({ client, prefix: 'platform' });
    expect([name, await overview.unchanged('wkl_1', objects, ctx())]).toEqual([name, null]);
  }
});

test('what was changed is not told from lists for a while, and lists are read again when they are old', async () => {
  const objects = desired('wkl_1');
  serve([objects]);
  let now = 0;
  const overview = openOverview({ client, prefix: 'platform' }, () => now);
  expect(await overview.unchanged('wkl_1', objects, ctx())).not.toBeNull();
  overview.forget('wkl_1');
  expect(await overview.unchanged('wkl_1', objects, ctx())).toBeNull();
  expect(api.requests).toHaveLength(4);
  now = 40_000;
  expect(await overview.unchanged('wkl_1', objects, ctx())).not.toBeNull();
  expect(api.requests).toHaveLength(8);
});

test('an API server that does not answer is asked again', async () => {
  const objects = desired('wkl_1');
  api.answer((_request, response) => respond(response, 503, 'away'));
  const overview = openOverview({ client, prefix: 'platform' });
  await expect(overview.unchanged('wkl_1', objects, ctx())).rejects.toMatchObject({ reason: 'transient' });
  serve([objects]);
  expect(await overview.unchanged('wkl_1', objects, ctx())).not.toBeNull();
});

test.each([
  [{ memory: '1024Mi', cpu: '1000m' }, { memory: '1Gi', cpu: '1' }, true],
  [{ memory: '1024Mi' }, { memory: '1000Mi' }, false],
  [{ minReadySeconds: 0 }, { added: 1 }, true],
  [{ replicas: 0 }, { replicas: 1 }, false],
  [{ hostNetwork: false }, {}, false],
  [{ list: [{ a: 1 }] }, { list: [{ a: 1, b: 2 }] }, true],
  [{ list: [{ a: 1 }] }, { list: [{ a: 1 }, { a: 2 }] }, false],
  [{ list: [] }, { list: {} }, false],
  [{ image: '1' }, { image: '1.0' }, false],
  [{ gone: undefined }, {}, true],
])('%j in %j: %j', (wanted, present, isPart) => {
  expect(isPartOf(wanted, present)).toBe(isPart);
});
