// An ingress that follows pods: requests go to those that are there and ready, and to no others, whatever the rows say.
import http from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pod } from 'kubernetes-types/core/v1';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { followPodRoutes } from '../../../drivers/workload/kubernetes/pod_routes';
import type { IngressDriver, Route } from '../../../engines/ingress/ingress';
import { ask, closeAll, openFront, routeOf, type Front } from '../../support/ingress/ingress';
import { listOf, oddApiServer, respond, statusOf, type OddApiServer } from '../../support/kubernetes/odd_api_server';
import { waitFor } from '../../support/wait_for';

const CREATED = '2026-01-01T00:00:00Z';
const RUNNING = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const WORKLOADS = ['platform/prj_1/wkl_1'];

let api: OddApiServer;
let client: KubernetesClient;
let front: Front;
let followed: IngressDriver;
let watches: ServerResponse[];
let port: number;
const servers: http.Server[] = [];
oddApiServer((opened) => ({ api, client } = opened));
afterEach(async () => {
  await followed.close(0);
  await closeAll();
  for (const server of servers.splice(0)) server.close();
});

/** What answers at the same port of several addresses. */
async function startPrograms(...addresses: string[]): Promise<void> {
  port = 0;
  for (const address of addresses) {
    const server = http.createServer((_request, response) => response.end(address));
    await new Promise<void>((resolve) => server.listen(port, address, resolve));
    ({ port } = server.address() as AddressInfo);
    servers.push(server);
  }
}

let version = 1;
/** As the kubelet says of a program that does not pass its probe. */
const UNREADY = { conditions: [{ type: 'Ready', status: 'False' }] };

interface PodPlace {
  namespace?: string;
  prefix?: string;
  status?: Pod['status'];
}

function podAt(address: string, { namespace = 'platform-prj-1', prefix = 'platform', status }: PodPlace = {}): Pod {
  const labels = {
    ...{ 'platform-api/installation': prefix, 'platform-api/project': 'prj_1' },
    ...{ 'platform-api/application': 'app_1', 'platform-api/workload': 'wkl_1' },
  };
  const metadata = { uid: `uid-${address}`, name: `web-${address}`, namespace, labels, creationTimestamp: CREATED };
  const ready = status?.conditions?.[0]?.status !== 'False';
  const container = { name: 'web', ready, restartCount: 0, state: { running: { startedAt: CREATED } } };
  return {
    metadata: { ...metadata, resourceVersion: String((version += 1)) },
    spec: { containers: [{ name: 'web', ports: [{ containerPort: port }] }] },
    status: { ...RUNNING, podIP: address, containerStatuses: [container] as never, ...status },
  };
}

function serve(pods: Pod[]): void {
  watches = [];
  api.answer(({ url }, response) => {
    if (!url.searchParams.has('watch')) return respond(response, 200, listOf(1, pods));
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
    watches.push(response);
  });
}

/** The network between them takes everything, and nothing comes back. */
function loseApiServer(): void {
  api.answer(() => undefined);
}

async function endProgram(): Promise<void> {
  const [server] = servers.splice(0);
  await new Promise<void>((resolve) => {
    server?.close(() => resolve());
    server?.closeAllConnections();
  });
}

async function startAnother(address: string, text: string): Promise<string[]> {
  const visits: string[] = [];
  const server = http.createServer((request, response) => {
    visits.push(request.url ?? '');
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  servers.push(server);
  return visits;
}

const tell = (type: string, object: Pod): void => {
  for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
};

async function follow(over: Partial<Route> = {}): Promise<void> {
  front = await openFront([], { confirmed: 'never', limits: { sweepMs: 20 } });
  const pods = followPodRoutes(front.ingress, client, () => undefined);
  followed = pods.ingress;
  followed.replaceRoutes([routeOf([], { workloads: WORKLOADS, ...over })]);
  await pods.known;
}

const rowAt = (address: string) => ({ instance_id: 'ins_row', port, location: { address }, pod_uid: `uid-${address}` });

async function answers(): Promise<string[]> {
  const found = await Promise.all(Array.from({ length: 8 }, () => ask(front)));
  return [...new Set(found.map(({ status, body }) => (status === 200 ? body : String(status))))].sort();
}

test('pods that come and go get requests and get none, without a word of the control plane', async () => {
  await startPrograms('127.0.0.2', '127.0.0.3');
  serve([podAt('127.0.0.2')]);
  await follow();
  expect(await answers()).toEqual(['127.0.0.2']);
  tell('ADDED', podAt('127.0.0.3'));
  await waitFor('both', async () => (await answers()).length === 2);
  tell('DELETED', podAt('127.0.0.2'));
  await waitFor('the other', async () => (await answers()).join() === '127.0.0.3');
  tell('MODIFIED', podAt('127.0.0.3', { status: UNREADY }));
  await waitFor('none', async () => (await answers()).join() === '503');
}, 30_000);

test('rows of pods that are not there any more are not believed', async () => {
  await startPrograms('127.0.0.2', '127.0.0.3');
  serve([podAt('127.0.0.3')]);
  await follow({ targets: [rowAt('127.0.0.2')] });
  await sleep(1_500);
  expect(await answers()).toEqual(['127.0.0.3']);
  followed.replaceApplicationRoutes('app_1', [
    routeOf([], { workloads: WORKLOADS, targets: [rowAt('127.0.0.2'), rowAt('127.0.0.3')] }),
  ]);
  expect(await answers()).toEqual(['127.0.0.3']);
  // By the id of its row.
  expect(front.lines.at(-1)).toMatchObject({ instance_id: 'ins_row' });
}, 30_000);

test('of a pod that the worker calls ready sooner, the address counts if the cluster has it', async () => {
  await startPrograms('127.0.0.2');
  serve([podAt('127.0.0.2', { status: UNREADY })]);
  await follow({ targets: [rowAt('127.0.0.2')] });
  expect(await answers()).toEqual(['127.0.0.2']);
  tell('DELETED', podAt('127.0.0.2'));
  await waitFor('none', async () => (await answers()).join() === '503');
}, 30_000);

test('what has ended, is elsewhere or is of another installation is no instance', async () => {
  await startPrograms('127.0.0.2');
  const pods = [
    podAt('127.0.0.2', { status: { phase: 'Failed', reason: 'Evicted' } }),
    podAt('127.0.0.2', { namespace: 'platform-prj-2' }),
    podAt('127.0.0.2', { prefix: 'other', namespace: 'other-prj-1' }),
  ];
  serve(pods.map((pod, index) => ({ ...pod, metadata: { ...pod.metadata, uid: `uid-${index}` } })));
  await follow();
  expect(await answers()).toEqual(['503']);
}, 30_000);

test('without the right to follow pods, rows count for a while after the worker has confirmed them', async () => {
  await startPrograms('127.0.0.2');
  api.answer((_request, response) => respond(response, 403, statusOf(403, 'Forbidden', 'no')));
  await follow({ targets: [rowAt('127.0.0.2')] });
  expect(await answers()).toEqual(['503']);
  followed.confirmRoutes(0);
  expect(await answers()).toEqual(['127.0.0.2']);
}, 30_000);

test('a watch that is open and silent confirms nothing, and one that says something does', async () => {
  await startPrograms('127.0.0.2');
  serve([podAt('127.0.0.2')]);
  await follow();
  const ageMs = (): number => front.ingress.routes().confirmedMsAgo ?? Infinity;
  expect(ageMs()).toBeLessThan(1_000);
  await sleep(2_500);
  // Since the begin of the watch.
  expect(ageMs()).toBeGreaterThan(2_000);
  tell('BOOKMARK', { metadata: { resourceVersion: String((version += 1)) } });
  await waitFor('a confirmation', async () => ageMs() < 1_000);
  expect(watches).toHaveLength(1);
}, 30_000);

test('who takes an address over while the watch is silent gets no request', async () => {
  await startPrograms('127.0.0.2');
  serve([podAt('127.0.0.2')]);
  await follow();
  expect(await answers()).toEqual(['127.0.0.2']);
  loseApiServer();
  await endProgram();
  expect(await answers()).toEqual(['503']);
  const visits = await startAnother('127.0.0.2', 'other');
  for (let index = 0; index < 30; index += 1) {
    expect(await answers()).toEqual(['503']);
    await sleep(100);
  }
  expect(visits).toEqual([]);
}, 30_000);

test('a program that starts anew in its pod gets requests soon: the watch is renewed for it', async () => {
  await startPrograms('127.0.0.2');
  serve([podAt('127.0.0.2')]);
  await follow();
  expect(await answers()).toEqual(['127.0.0.2']);
  await endProgram();
  expect(await answers()).toEqual(['503']);
  await startAnother('127.0.0.2', 'again');
  const startedAt = performance.now();
  await waitFor('the program', async () => (await answers()).join() === 'again');
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(watches.length).toBeGreaterThan(1);
}, 30_000);
