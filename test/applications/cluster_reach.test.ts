/** @user any */
// Instances that the cluster calls ready, and to which the machine of the ingress cannot connect.
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { WorkloadInstance } from '../../drivers/workload';
import { startReachCheck } from '../../server/agents/workloads/reach';
import { reachOf } from '../../server/platform/reach';
import { freePort } from '../support/processes/free_port';
import { waitFor } from '../support/wait_for';

const TIMES = { betweenMs: 5, onceMoreMs: 100 };

const instanceAt = (port: number, status: WorkloadInstance['status'] = 'running'): WorkloadInstance => ({
  ...{ uid: 'one', project_id: 'prj_1', workload_id: 'wkl_1', status, reason: null, fault: null, restarts: 0 },
  ...{ created_at: '2026-01-01T00:00:00Z', started_at: null, ended_at: null, location: { address: '127.0.0.1' }, port },
});

/** Counts the connections. */
async function listening(): Promise<{ server: Server; port: number; accepted: () => number }> {
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port, accepted: () => count };
}

function checkWithLog(): { check: ReturnType<typeof startReachCheck>; warnings: object[] } {
  const warnings: object[] = [];
  return { check: startReachCheck({ warn: (about: object) => void warnings.push(about) } as never, TIMES), warnings };
}

test('says from which address this machine connects, and why it cannot', async () => {
  const { server, port } = await listening();
  expect(await reachOf('127.0.0.1', port)).toEqual({ from: '127.0.0.1', error: null });
  server.close();
  expect(await reachOf('127.0.0.1', await freePort())).toEqual({ from: '127.0.0.1', error: 'ECONNREFUSED' });
});

test('no connection stays open, and an address without a way to it is told', async () => {
  const ends: Promise<unknown>[] = [];
  const server = createServer((socket) => void ends.push(once(socket.resume(), 'close')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await reachOf('127.0.0.1', (server.address() as AddressInfo).port);
  await waitFor('the connection', () => ends.length === 1);
  await Promise.all(ends);
  server.close();
  expect(await reachOf('255.255.255.255', 80)).toEqual({ from: null, error: expect.any(String) });
});

test('one warning tells of all that are refused', async () => {
  const { check, warnings } = checkWithLog();
  const port = await freePort();
  check.noticed('one', instanceAt(port));
  await waitFor('the warning', () => warnings.length === 1);
  expect(warnings).toEqual([{ address: '127.0.0.1', port, from: '127.0.0.1', error: 'ECONNREFUSED' }]);
  const { server, port: open, accepted } = await listening();
  check.noticed('two', instanceAt(await freePort()));
  check.noticed('three', instanceAt(open));
  await waitFor('the connections', () => accepted() === 2);
  expect(warnings).toHaveLength(1);
  check.close();
  server.close();
});

test('it is tried once more, when rules may have changed', async () => {
  const { check, warnings } = checkWithLog();
  const { server, port, accepted } = await listening();
  server.once('connection', () => server.close());
  check.noticed('one', instanceAt(port));
  await waitFor('the warning', () => warnings.length === 1);
  expect(accepted()).toBe(1);
  check.close();
});

test('nothing is said of one that is not ready, that accepts connections, or that goes', async () => {
  const { check, warnings } = checkWithLog();
  const refusing = await freePort();
  check.noticed('starting', instanceAt(refusing, 'starting'));
  check.noticed('going', instanceAt(refusing));
  check.noticed('going', null);
  const { server, port, accepted } = await listening();
  check.noticed('fine', instanceAt(port));
  check.noticed('fine', instanceAt(port));
  await waitFor('the connections', () => accepted() === 2);
  // Longer than all attempts.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect([warnings, accepted()]).toEqual([[], 2]);
  check.close();
  server.close();
});
