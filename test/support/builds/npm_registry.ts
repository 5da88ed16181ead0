// A registry that speaks npm's protocol, with packages that a test describes. What it offers as Node.js is the one that
// runs the test, under another version.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';

export interface Published {
  name: string;
  version: string;
  engines?: Record<string, string>;
  bin?: Record<string, string>;
  files: Record<string, string>;
}

export interface NpmRegistry {
  url: string;
  /** Paths that were asked for. */
  requests: string[];
  /** Answers 503 to everything. */
  isDown: boolean;
  /** Changes a byte of every tarball that it sends. */
  isCorrupt: boolean;
  close(): Promise<void>;
}

/** Starts it, and makes it the registry of npm in this process until `close`. */
export async function startNpmRegistry(packages: readonly Published[]): Promise<NpmRegistry> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'registry-'));
  const before = process.env.npm_config_registry;
  const tarballs = new Map(packages.map((one) => [`${one.name}-${one.version}`, pack(folder, one)]));
  const server = createServer((request, response) => {
    const target = decodeURIComponent(request.url ?? '/');
    self.requests.push(target);
    if (self.isDown) return response.writeHead(503).end();
    const tarball = /^\/-\/(.+)\.tgz$/.exec(target)?.[1];
    const bytes =
      tarball === undefined ? packument(self.url, packages, tarballs, target.slice(1)) : tarballs.get(tarball);
    if (bytes === undefined) return response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    response.end(tarball !== undefined && self.isCorrupt ? corrupted(bytes) : bytes);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const self: NpmRegistry = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests: [],
    isDown: false,
    isCorrupt: false,
    async close() {
      if (before === undefined) delete process.env.npm_config_registry;
      else process.env.npm_config_registry = before;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
  process.env.npm_config_registry = self.url;
  return self;
}

/** A package of Node.js for this host. */
export function nodePackage(version: string): Published {
  const script = `#!/bin/sh\n[ "$1" != --version ] || { echo v${version}; exit 0; }\nexec '${process.execPath}' "$@"\n`;
  return {
    name: `node-${process.platform}-${process.arch}`,
    version,
    bin: { node: 'bin/node' },
    files: { 'bin/node': script },
  };
}

/** A package manager that prints its name, version and arguments. */
export function managerPackage(name: string, program: string, version: string, node?: string): Published {
  const script =
    `#!/usr/bin/env node\nconsole.log(process.argv[2] === '--version' ? '${version}' : '${program} ${version} ' + ` +
    "process.argv.slice(2).join(' '));\n";
  return {
    name,
    version,
    bin: { [program]: 'bin/program.js' },
    files: { 'bin/program.js': script },
    ...(node !== undefined && { engines: { node } }),
  };
}

function pack(folder: string, { name, version, bin, engines, files }: Published): Buffer {
  const directory = mkdtempSync(path.join(folder, 'package-'));
  const all = { 'package.json': JSON.stringify({ name, version, bin, engines }), ...files };
  for (const [file, text] of Object.entries(all)) {
    const target = path.join(directory, 'package', file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
    chmodSync(target, 0o755);
  }
  const tarball = path.join(directory, 'package.tgz');
  execFileSync('tar', ['-czf', tarball, '-C', directory, 'package']);
  return readFileSync(tarball);
}

function packument(
  url: string,
  packages: readonly Published[],
  tarballs: Map<string, Buffer>,
  name: string,
): Buffer | undefined {
  const found = packages.filter((one) => one.name === name);
  if (found.length === 0) return undefined;
  const versions = found.map(({ version, bin, engines }) => {
    const integrity = `sha512-${createHash('sha512')
      .update(tarballs.get(`${name}-${version}`)!)
      .digest('base64')}`;
    return [
      version,
      {
        name,
        version,
        bin,
        engines,
        dist: { tarball: `${url}-/${encodeURIComponent(`${name}-${version}`)}.tgz`, integrity },
      },
    ] as const;
  });
  return Buffer.from(
    JSON.stringify({ name, 'dist-tags': { latest: found.at(-1)!.version }, versions: Object.fromEntries(versions) }),
  );
}

function corrupted(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length - 9]! ^= 1;
  return copy;
}
