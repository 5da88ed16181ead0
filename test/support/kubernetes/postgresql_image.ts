// An image with the PostgreSQL of Debian that is installed here: its server, sh, coreutils, tar and gzip, as in images
// of vendors.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { tarOf } from '../builds/images';
import { importLayers } from './database_image';

const ROOT = '/usr/lib/postgresql';
const COREUTILS = ['cat', 'chmod', 'mkdir', 'mv', 'rm', 'sleep', 'sync', 'touch', 'wc'];
/** What an operator runs beside the server. */
const OF_OPERATORS = ['pg_basebackup', 'pg_controldata', 'pg_ctl', 'pg_isready', 'pg_rewind'];
/** Extensions with libraries of their own, and a compiler. */
const LEFT_OUT = /llvmjit|postgis|address_standardizer|bitcode/;

/** As images of CloudNativePG have it: 26 is its `postgres`. */
const PASSWD = 'root:x:0:0:root:/root:/bin/sh\npostgres:x:26:26::/var/lib/postgresql:/bin/sh\n';

/** Newest version of Debian here; null: none. */
export function debianPostgresql(): string | null {
  const found = existsSync(ROOT) ? readdirSync(ROOT).filter((one) => existsSync(`${ROOT}/${one}/bin/postgres`)) : [];
  return found.sort((a, b) => Number(b) - Number(a))[0] ?? null;
}

/** A program of Debian's PostgreSQL, without its wrapper. */
export function programOf(version: string, name: string): string {
  return path.join(ROOT, version, 'bin', name);
}

/** Files with the libraries of programs, as a layer of an image. */
function debianLayer(files: readonly string[], trees: readonly string[] = []): Buffer {
  const linked = files.flatMap((file) =>
    execFileSync('ldd', [file])
      .toString()
      .split('\n')
      .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []),
  );
  const all = [...new Set([...files, ...linked])].map((file) => file.slice(1));
  const names = [...all, ...trees.map((tree) => tree.slice(1))];
  const args = ['-C', '/', '--dereference', '--hard-dereference', '-cf', '-', '-T', '-'];
  return execFileSync('tar', args, { input: names.join('\n'), maxBuffer: 1 << 30 });
}

/** Below an application that uses psql. */
export async function psqlLayers(version: string): Promise<Buffer[]> {
  const temporary = await tarOf([{ name: 'tmp/', type: 'directory', mode: 0o1777 }]);
  return [debianLayer([programOf(version, 'psql')]), temporary];
}

/** On all nodes. */
export async function importPostgresql(cluster: ClusterOfMachine, name: string, version: string): Promise<void> {
  const libraries = readdirSync(`${ROOT}/${version}/lib`)
    .filter((file) => file.endsWith('.so') && !LEFT_OUT.test(file))
    .map((file) => `${ROOT}/${version}/lib/${file}`);
  const tools = [...COREUTILS, 'dash', 'tar', 'gzip'].map((tool) => execFileSync('which', [tool]).toString().trim());
  const programs = ['postgres', 'initdb', ...OF_OPERATORS].map((program) => programOf(version, program));
  const trees = [`/usr/share/postgresql/${version}`, '/usr/share/zoneinfo', '/usr/lib/locale/C.utf8'];
  const layers = [
    debianLayer([...tools, ...programs, ...libraries], trees),
    await tarOf([
      { name: 'tmp/', type: 'directory', mode: 0o1777 },
      { name: 'bin/sh', type: 'symlink', linkname: '/usr/bin/dash' },
      { name: 'etc/passwd', content: PASSWD },
    ]),
  ];
  await importLayers(cluster, name, { layers, path: `${ROOT}/${version}/bin:/usr/bin:/bin` });
}
