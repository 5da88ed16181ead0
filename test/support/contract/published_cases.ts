// Ports of servers in networks of projects, at 127.0.0.1 of the host: who is led where, and how long.
import { connect, type Socket } from 'node:net';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { HOST_NETWORK } from '../../../core/outbound/network_location';
import { freePort } from '../processes/free_port';
import { ask, hostServer, openNetworkTrial, type NetworkTrial } from '../networks/network_trial';
import { waitFor } from '../wait_for';

export function publishedPortCases(): void {
  let one: NetworkTrial;
  beforeAll(async () => void (one = await openNetworkTrial()), 60_000);
  afterAll(() => one?.close(), 60_000);
  afterEach(() => one.trial.errors.splice(0));

  const serve = async (unitId: string, network: string): Promise<number> => {
    const port = await freePort();
    await one.serve(unitId, network, port, { published_port: port });
    return port;
  };
  const destroy = async (...ids: string[]): Promise<void> => {
    for (const id of ids) await one.trial.runtime.destroy(id, driverContext(20_000));
  };
  const program = (): string => path.join(one.options.directory, '.published/process');
  const hasProgram = (): boolean => existsSync(program());
  const programId = (): number => Number(readFileSync(program(), 'utf8').split(' ')[0]);

  test('the host reaches the servers of all projects at 127.0.0.1, and projects only their own', async () => {
    const [a, b] = [await serve('dbs_a.server', 'prj_a'), await serve('dbs_b.server', 'prj_b')];
    expect(await ask(HOST_NETWORK, a)).toBe('dbs_a.server 127.0.0.1');
    expect(await ask(HOST_NETWORK, b)).toBe('dbs_b.server 127.0.0.1');
    expect(await one.reach('ins_b', 'prj_b', [`127.0.0.1:${a}`, `127.0.0.1:${b}`])).toEqual({
      [`127.0.0.1:${a}`]: 'ECONNREFUSED',
      [`127.0.0.1:${b}`]: 'dbs_b.server 127.0.0.1',
    });
    await destroy('dbs_a.server', 'ins_b');
    expect(await ask(HOST_NETWORK, a)).toBe('ECONNREFUSED');
    expect(await ask(HOST_NETWORK, b)).toBe('dbs_b.server 127.0.0.1');
    await destroy('dbs_b.server');
    await waitFor('nothing is left', () => Promise.resolve(one.leftOvers().length === 0 || null));
  });

  test('bytes arrive whole in both directions, and so do their ends', async () => {
    const port = await freePort();
    const echo = `require("net").createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
      .listen(${port}, "127.0.0.1", () => console.log("listens"))`;
    const spec = { network: 'prj_a', published_port: port };
    await one.trial.start(one.trial.spec('dbs_echo.server', `exec node -e '${echo}'`, spec));
    await one.trial.printed('dbs_echo.server', 'listens');
    const sent = Buffer.alloc(4 << 20, 'platform');
    const received = await new Promise<Buffer>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      const parts: Buffer[] = [];
      socket.on('data', (part: Buffer) => parts.push(part));
      socket.on('end', () => resolve(Buffer.concat(parts)));
      socket.on('error', reject);
      socket.end(sent);
    });
    expect(received.equals(sent)).toBe(true);
    await destroy('dbs_echo.server');
  });

  test('connections outlive the control plane, and the next one goes on with the same program', async () => {
    const port = await serve('dbs_kept.server', 'prj_a');
    const before = programId();
    await one.reopenNetworks();
    expect(programId()).toBe(before);
    expect(await ask(HOST_NETWORK, port)).toBe('dbs_kept.server 127.0.0.1');
    const further = await serve('dbs_more.server', 'prj_a');
    expect(await ask(HOST_NETWORK, further)).toBe('dbs_more.server 127.0.0.1');
    expect(programId()).toBe(before);
    await destroy('dbs_kept.server', 'dbs_more.server');
  });

  test('a program that is killed is replaced, and leads to the same ports', async () => {
    const port = await serve('dbs_killed.server', 'prj_a');
    const before = programId();
    process.kill(before, 'SIGKILL');
    await waitFor('another program', () => Promise.resolve((hasProgram() && programId() !== before) || null));
    await waitFor('the port', async () => (await ask(HOST_NETWORK, port)) === 'dbs_killed.server 127.0.0.1' || null);
    await destroy('dbs_killed.server');
  });

  test('a port that another program of the host has is not free, and is led to once it is', async () => {
    const { port, server } = await hostServer('127.0.0.1');
    expect(await one.trial.runtime.isPortFree(port, 'prj_a')).toBe(false);
    await one.serve('dbs_late.server', 'prj_a', port, { published_port: port });
    expect(await ask(HOST_NETWORK, port)).toBe('the host');
    expect(one.trial.errors.join()).toContain(`Port ${port} is not published: EADDRINUSE.`);
    await new Promise((resolve) => server.close(resolve));
    await waitFor('the port', async () => (await ask(HOST_NETWORK, port)) === 'dbs_late.server 127.0.0.1' || null);
    await destroy('dbs_late.server');
    expect(await one.trial.runtime.isPortFree(port, 'prj_a')).toBe(true);
  });

  test('the port of a server that has ended is free for it', async () => {
    const port = await serve('dbs_ended.server', 'prj_a');
    const handle = await one.trial.runtime.find('dbs_ended.server');
    await one.trial.runtime.stop(handle!, { grace_ms: 1_000 }, driverContext(20_000));
    expect(await one.trial.runtime.isPortFree(port, 'prj_a')).toBe(true);
    await destroy('dbs_ended.server');
  });

  test('an open connection stays while other ports come and go, and ends with its own', async () => {
    const port = await freePort();
    const hold = `require("net").createServer((socket) => socket.on("error", () => {}).write("hello"))
      .listen(${port}, "127.0.0.1", () => console.log("listens"))`;
    const spec = { network: 'prj_a', published_port: port };
    await one.trial.start(one.trial.spec('dbs_held.server', `exec node -e '${hold}'`, spec));
    await one.trial.printed('dbs_held.server', 'listens');
    const socket = await new Promise<Socket>((resolve) => {
      const found = connect({ host: '127.0.0.1', port }).once('data', () => resolve(found));
      found.on('error', () => undefined);
    });
    await serve('dbs_other.server', 'prj_b');
    await one.reopenNetworks();
    await destroy('dbs_other.server');
    expect(socket.readyState).toBe('open');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await destroy('dbs_held.server');
    await closed;
  });
}
