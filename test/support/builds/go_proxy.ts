// A proxy of Go modules with the module of a Go that a test describes: https://go.dev/ref/mod#goproxy-protocol
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32 } from 'node:zlib';
import { GO_MODULE, goModuleVersion } from '../../../drivers/toolchain/go_release';

export interface GoProxy {
  url: string;
  /** Of the module, as go.sum has it. */
  hash: string;
  requests: string[];
  /** The answer to everything; null: the archive. */
  answer: { status: number; body: Buffer } | null;
  close(): Promise<void>;
}

/** @param files of the Go, by their names in it */
export async function startGoProxy(version: string, files: Record<string, string>): Promise<GoProxy> {
  const moduleVersion = goModuleVersion(version);
  const named = Object.entries(files).map(([name, text]) => [`${GO_MODULE}@${moduleVersion}/${name}`, text] as const);
  const archive = zip(named);
  const server = createServer((request, response) => {
    self.requests.push(request.url ?? '');
    if (self.answer !== null) return response.writeHead(self.answer.status).end(self.answer.body);
    if (request.url === `/${GO_MODULE}/@v/${moduleVersion}.zip`) return response.end(archive);
    response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const self: GoProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hash: hashOf(named),
    requests: [],
    answer: null,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

function hashOf(files: (readonly [name: string, text: string])[]): string {
  const sha256 = (text: string) => createHash('sha256').update(text);
  const lines = files.map(([name, text]) => `${sha256(text).digest('hex')}  ${name}\n`);
  const sorted = lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
  return `h1:${sha256(sorted.join('')).digest('base64')}`;
}

/** Stored, not compressed. */
export function zip(files: (readonly [name: string, text: string])[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of files) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc32(text), 10);
    common.writeUInt32LE(Buffer.byteLength(text), 14);
    common.writeUInt32LE(Buffer.byteLength(text), 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), Buffer.from(text)]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\0'), common, place, Buffer.from(name)]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, central, end]);
}
