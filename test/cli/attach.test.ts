/** @user any */
// How svc takes the end of a connection to a run: a refusal is said once, a lost line is connected again.
import { spawnSync } from 'node:child_process';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { WebSocketServer, type WebSocket } from 'ws';
import { bundlePart } from '../support/cli/part';
import { buildCli, openHome, type Home, type Ran } from '../support/cli/svc';

let home: Home;
beforeAll(() => {
  buildCli();
  home = openHome();
});
afterAll(() => home?.remove());

const APPLICATION = `app_${'0'.repeat(26)}`;
const message = (channel: number, content: string): Buffer => Buffer.concat([Buffer.of(channel), Buffer.from(content)]);

/** Runs a command at a server that serves its connections so, one after the other. */
async function runAt(...serve: ((ws: WebSocket) => void)[]): Promise<Ran & { connections: number }> {
  const run = { id: 'run_1', application_id: APPLICATION, tty: false };
  const server = http.createServer((_, response) => response.end(JSON.stringify(run)));
  const sockets = new WebSocketServer({ server });
  let connections = 0;
  sockets.on('connection', (ws) => {
    ws.send(message(3, '{"type":"ready","writer":true}'));
    // A prompt, which is new at each connection.
    ws.send(message(1, '.'.repeat(connections + 1)));
    serve[Math.min(connections, serve.length - 1)]?.(ws);
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { SVC_URL: url, SVC_TOKEN: 'x', SVC_PROJECT: 'prj_1', SVC_APP: APPLICATION };
  const ran = await home.svc(['run', 'cat'], { env, withinMs: 30_000 });
  sockets.close();
  server.close();
  server.closeAllConnections();
  return { ...ran, connections };
}

const closeWith =
  (code: number, reason: string) =>
  (ws: WebSocket): void =>
    void setTimeout(() => ws.close(code, reason), 50);

test.each([
  [1002, 'A resize has rows and columns of at least 1.', 'The server ended the connection: A resize has rows and'],
  [1008, 'forbidden', 'The server ended the connection: forbidden.'],
  [1009, '', 'The server ended the connection: it gave no reason (code 1009).'],
  [4001, 'The run was taken \u001b[31mover', 'The server ended the connection: The run was taken over.'],
])('a refusal with the code %i ends the command with its sentence', async (code, reason, sentence) => {
  const { connections, ...ran } = await runAt(closeWith(code, reason));
  expect([ran.code, connections]).toEqual([3, 1]);
  expect(ran.stderr).toContain(`Error: ${sentence}`);
  expect(ran.stderr).not.toContain('Connecting again');
});

test('a lost line is connected again, counted although each connection brings output', async () => {
  const lose = (ws: WebSocket): void => void setTimeout(() => ws.terminate(), 50);
  const end = (ws: WebSocket): void => {
    ws.send(message(3, '{"type":"exit","code":7}'));
    ws.close(1000);
  };
  const { code, stdout, stderr, connections } = await runAt(
    lose,
    closeWith(1001, 'The server is stopping.'),
    lose,
    end,
  );
  expect([code, connections, stdout]).toEqual([7, 4, '....']);
  expect(stderr.match(/\(\d of 8\)/g)).toEqual(['(1 of 8)', '(2 of 8)', '(3 of 8)']);
});

test('a line on which not even a ping comes is cut off, unless the reader here is slow', () => {
  const output = path.join(home.directory, 'silence.cjs');
  bundlePart('run/silence.ts', output);
  const source = `const { mock } = require('node:test');
    mock.timers.enable({ apis: ['setInterval', 'Date'] });
    const { watchSilence } = require('${output}');
    let cut = 0;
    const line = Object.assign(new (require('node:events'))(), { isPaused: false, terminate: () => (cut += 1) });
    const tick = (seconds) => { for (let n = 0; n < seconds; n += 5) mock.timers.tick(5000); return cut; };
    const end = watchSilence(line);
    const seen = [tick(90)];
    line.emit('ping');
    seen.push(tick(90));
    line.isPaused = true;
    seen.push(tick(600));
    line.isPaused = false;
    seen.push(tick(90), tick(10));
    end();
    seen.push(tick(600));
    console.log(seen.join(' '));`;
  const { stdout } = spawnSync(process.execPath, ['-e', source], { env: { NODE_NO_WARNINGS: '1' }, encoding: 'utf8' });
  expect(stdout).toBe('0 0 0 0 1 1\n');
});
