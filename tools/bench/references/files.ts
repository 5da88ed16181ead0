// Files of a directory on node:http, streamed, or written and synced under their name. Argument: the directory.
import { createReadStream, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

const directory = process.argv[2] as string;

async function receive(request: http.IncomingMessage, file: string): Promise<void> {
  const handle = await open(file, 'w');
  for await (const piece of request) await handle.write(piece as Buffer);
  await handle.sync();
  await handle.close();
  const directory = await open(path.dirname(file), 'r');
  await directory.sync();
  await directory.close();
}

const server = http.createServer((request, response) => {
  const name = path.basename(request.url ?? '');
  if (name === 'usage')
    return void response.end(JSON.stringify({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }));
  const file = path.join(directory, name);
  if (request.method === 'PUT') return void receive(request, file).then(() => response.end());
  response.setHeader('content-length', statSync(file).size);
  createReadStream(file, { highWaterMark: 256 * 1024 }).pipe(response);
});
server.listen(0, '127.0.0.1', () => process.stdout.write(String((server.address() as AddressInfo).port)));
