// Rows of instances from the pods that a cluster tells of, among pods that nobody should be led astray by.
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../core/config';
import { createLog } from '../../core/log/log';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import type { WorkloadDriver } from '../../drivers/workload';
import { openKubernetesWorkloads } from '../../drivers/workload/kubernetes/driver';
import { namespaceOf } from '../../drivers/workload/kubernetes/names';
import { startPodRows } from '../../server/agents/workloads/pod_rows';
import { podRowsConfirmedMsAgo } from '../../models/applications/cluster_facts';
import { projectRoom } from '../../server/platform/cluster';
import { respond, startOddApiServer, type OddApiServer } from '../support/kubernetes/odd_api_server';
import { waitFor } from '../support/wait_for';
import { openObserved, type Observed } from '../support/observers/observed';

const WORKLOAD = 'wkl_1';

let observed: Observed;
let api: OddApiServer;
let client: KubernetesClient;
let workloads: WorkloadDriver;
let close: () => Promise<void>;

beforeAll(async () => {
  observed = await openObserved();
  api = await startOddApiServer();
  client = openKubernetesClient(api.access());
  const { application, project, sql } = observed;
  await sql(
    `insert into workloads (id, project_id, application_id, deployment_id, release_id, process_id, process_type,
      instances, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, 'web', 2, now(), now())`,
    [WORKLOAD, project, application.id, application.deployment, application.release, application.processes.web],
  );
});
beforeEach(() => {
  const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };
  const room = projectRoom(loadConfig({}));
  workloads = openKubernetesWorkloads({ client, prefix: 'platform', networks, room, log: () => undefined });
});
afterEach(async () => {
  await workloads.close();
  await close?.();
  await observed.sql('delete from instances');
});
afterAll(async () => {
  client.close();
  await api.close();
  await observed.close();
});

function podOf(uid: string, container: object, project = observed.project): object {
  const labels = {
    ...{ 'platform-api/installation': 'platform', 'platform-api/project': project },
    'platform-api/workload': WORKLOAD,
  };
  const namespace = namespaceOf('platform', project);
  return {
    metadata: { namespace, name: uid, uid, resourceVersion: '1', labels },
    spec: { containers: [{ name: 'web' }] },
    status: { phase: 'Running', containerStatuses: [{ restartCount: 0, ready: false, ...container }] },
  };
}

/** The rows begin to follow these. */
function follow(...items: object[]): void {
  api.answer(({ url }, response) => {
    if (!url.searchParams.has('watch')) return respond(response, 200, { metadata: { resourceVersion: '1' }, items });
    response.writeHead(200).flushHeaders();
  });
  const shipper = { shipRemaining: () => Promise.resolve() };
  const reach = { noticed: () => undefined };
  const parts = { workloads, shipper, reach, log: createLog('silent'), taskChanged: () => undefined };
  ({ close } = startPodRows({ ...parts, database: observed.database }));
}

const rows = () =>
  observed.sql<{ pod_uid: string; status_reason: string | null }>('select pod_uid, status_reason from instances');
const uids = async (): Promise<string[]> => (await rows()).map(({ pod_uid }) => pod_uid).sort();

test('a pod whose row cannot be written holds up no other', async () => {
  const odd = podOf('a', { restartCount: 2 ** 40 });
  follow(odd, podOf('b', {}), podOf('c', {}));
  await waitFor('the others', async () => (await uids()).join() === 'b,c');
});

test('what a program has put into the words of the cluster can be stored', async () => {
  const message = 'mkdir /\u0000\u001b[31m/app: invalid argument';
  follow(podOf('a', { state: { waiting: { reason: 'CreateContainerError', message } } }));
  const [row] = await waitFor('its row', async () => {
    const found = await rows();
    return found.length > 0 && found;
  });
  expect(row?.status_reason).toBe('The cluster cannot start the program: mkdir / [31m/app: invalid argument.');
});

test('a pod in the namespace of another project is no instance of the workload that it names', async () => {
  follow(podOf('a', {}, 'prj_other'), podOf('b', {}));
  await waitFor('the one of the project', async () => (await uids()).join() === 'b');
});

test('rows are confirmed for the moment at which the cluster said something last, not for the present', async () => {
  await observed.sql("delete from cluster_facts where name = 'pods'");
  follow(podOf('uid-1', { state: {} }));
  await waitFor('a confirmation', async () => (await podRowsConfirmedMsAgo(observed.database)) !== null);
  // The watch is open, and nothing comes.
  await sleep(3_500);
  expect(await podRowsConfirmedMsAgo(observed.database)).toBeGreaterThan(3_400);
}, 20_000);
