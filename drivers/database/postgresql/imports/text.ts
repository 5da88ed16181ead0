// The source of an import as the text of a plain dump: a file as it is, an archive by `pg_restore` without a database,
// a server elsewhere by `pg_dump`. The programs run as the user of the server, because what they read is a stranger's.
import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, open, readdir, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { failureTextOf } from '../../../../core/log/failure_text';
import { run } from '../../../../core/process/command';
import { inspectSourceFile, type SourceFile } from '../../imports/source_file';
import { keptOutput, type SourceServer } from '../../imports/import';
import { ownerOf } from '../../../hosted_server/server_directory';
import type { Owner } from '../../../hosted_server/server_directory';
import type { Cluster } from '../cluster';
import { newestTool, spawnTool } from '../programs';

export interface DumpText {
  text: AsyncIterable<Buffer>;
  /** Rejects where the program that writes the text has failed. */
  whole(): Promise<void>;
}

const unreadable = (stderr: string): string => reasonOf('The archive could not be read.', stderr);
const STDERR_CHARACTERS_MAX = 4_000;
/** Of the directory format (`pg_dump -Fd`), and of the tar format beside it. */
const DIRECTORY_FILES = /^(toc\.dat|\d+\.dat(\.gz|\.lz4|\.zst)?|blobs?(_\d+)*\.(toc|dat)(\.gz|\.lz4|\.zst)?)$/;

/** @throws DriverError invalid */
export async function textOfFile(cluster: Cluster, file: string, ctx: DriverContext): Promise<DumpText> {
  const found = await inspectSourceFile(file);
  if (found.format === 'rdb') throw new DriverError('invalid', 'The file is a snapshot of Redis.');
  if (found.format === 'text') return { text: found.open(), whole: () => Promise.resolve() };
  return restored(cluster, file, found, ctx);
}

/** Archives of all formats and versions that the newest `pg_restore` of this host knows. */
async function restored(cluster: Cluster, file: string, found: SourceFile, ctx: DriverContext): Promise<DumpText> {
  const { program } = await newestTool(cluster, 'pg_restore');
  const as = await ownerOf(cluster.serverDirectory);
  const directory = `${file}.unpacked`;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { mode: 0o711 });
  if (found.format === 'tar') {
    const tar = path.join(directory, 'archive.tar');
    await (await unpacked(found, tar)).close();
    if (!(await hasScript(tar, ctx))) {
      const files = await unpackDirectory(tar, path.join(directory, 'files'), as, ctx);
      return outputOf(spawnTool(program, ['-f', '-', files], { as }, ctx), unreadable);
    }
    return fromHandle(program, await open(tar, 'r'), as, ctx);
  }
  // Not compressed on the outside, a file that is read by its own descriptor.
  const plain = path.join(directory, 'dump');
  const handle = (await isPlain(file)) ? await open(file, 'r') : await unpacked(found, plain);
  return fromHandle(program, handle, as, ctx);
}

/** The program reads by the descriptor: it may not open the file itself. */
function fromHandle(program: string, handle: FileHandle, as: Owner, ctx: DriverContext): DumpText {
  const child = spawnTool(program, ['-f', '-'], { as, input: handle.fd }, ctx);
  child.once('close', () => void handle.close().catch(() => undefined));
  return outputOf(child, unreadable);
}

/** The tar format of `pg_dump -Ft` has one; the directory format has none. */
async function hasScript(tar: string, ctx: DriverContext): Promise<boolean> {
  const names = await run('tar', ['-tf', tar], ctx).catch(() => {
    throw new DriverError('invalid', 'The tar archive is damaged.');
  });
  return /^(\.\/)?restore\.sql$/m.test(names);
}

async function isPlain(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  const head = Buffer.alloc(5);
  await handle.read(head, 0, 5, 0).finally(() => handle.close());
  return head.toString('latin1') === 'PGDMP';
}

async function unpacked(found: SourceFile, to: string): Promise<FileHandle> {
  const handle = await open(to, 'wx+', 0o600);
  for await (const piece of found.open()) await handle.write(piece);
  await handle.close();
  return open(to, 'r');
}

/** A tar of the directory that `pg_dump -Fd` made. Nothing else is kept of it. */
async function unpackDirectory(tar: string, files: string, as: Owner, ctx: DriverContext): Promise<string> {
  await mkdir(files, { mode: 0o700 });
  const flat = ['--no-same-owner', '--no-same-permissions', '--transform', 's,^.*/,,'];
  await run('tar', ['-xf', tar, '-C', files, ...flat, '--wildcards', '*.dat', '*.dat.*', '*.toc'], ctx).catch(() => {
    throw new DriverError('invalid', 'The file is a tar archive, and no dump of PostgreSQL.');
  });
  await rm(tar);
  for (const name of await readdir(files)) {
    const place = path.join(files, name);
    // A link would lead to files of this host.
    if (!DIRECTORY_FILES.test(name) || !(await lstat(place)).isFile())
      await rm(place, { recursive: true, force: true });
    else if (process.getuid?.() === 0) await chown(place, as.uid, as.gid);
  }
  if (process.getuid?.() === 0) await chown(files, as.uid, as.gid);
  await chmod(files, 0o700);
  return files;
}

/** The content of a server elsewhere, as a snapshot of it sees them. @throws DriverError invalid */
export async function textOfServer(
  cluster: Cluster,
  server: SourceServer,
  snapshot: string | null,
  ctx: DriverContext,
): Promise<DumpText> {
  const { program, series } = await newestTool(cluster, 'pg_dump');
  const env = {
    ...{ PGHOST: server.host, PGHOSTADDR: server.address, PGPORT: String(server.port) },
    ...{ PGUSER: server.user, PGPASSWORD: server.password, PGDATABASE: server.database },
    ...{ PGSSLMODE: server.tls, PGPASSFILE: '/dev/null', PGSERVICEFILE: '/dev/null', PGAPPNAME: 'import' },
    ...(server.tls.startsWith('verify') && { PGSSLROOTCERT: '/etc/ssl/certs/ca-certificates.crt' }),
  };
  const args = ['-w', '--no-sync', '--lock-wait-timeout=300s', ...(snapshot ? [`--snapshot=${snapshot}`] : [])];
  const child = spawnTool(program, args, { as: await ownerOf(cluster.serverDirectory), env }, ctx);
  return outputOf(child, (stderr) => failureOfDump(stderr, series));
}

/** `pg_dump` reads from servers of its own version and older ones, but not the oldest. */
function failureOfDump(stderr: string, series: string): string {
  const version = /server version: (\d+(\.\d+)?)/.exec(stderr)?.[1];
  if (version === undefined || !stderr.includes('version mismatch'))
    return reasonOf('The database could not be read.', stderr);
  const major = Math.floor(Number(version));
  if (major < Number(series))
    return (
      `The source is PostgreSQL ${version}, which pg_dump ${series} of the host does not read any more. Import a ` +
      'file that a pg_dump of the source has made.'
    );
  return (
    `The source is PostgreSQL ${major}, and the newest pg_dump of the host is ${series}. The operator can install ` +
    `the package postgresql-client-${major}; or import a file that pg_dump of version ${major} has made.`
  );
}

function reasonOf(failure: string, stderr: string): string {
  const reason = failureTextOf(stderr);
  return reason ? `${failure} ${reason}` : failure;
}

function outputOf(child: ChildProcess, failure: (stderr: string) => string): DumpText {
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARACTERS_MAX);
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  closed.catch(() => undefined);
  return {
    text: keptOutput(child),
    async whole() {
      const [code] = await closed.catch((error: Error) => {
        throw Object.assign(new DriverError('transient', 'The import was ended before it was complete.'), {
          cause: error,
        });
      });
      if (code === 0) return;
      throw new DriverError('invalid', failure(stderr));
    },
  };
}
