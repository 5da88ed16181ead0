// Servers of MariaDB as its own programs reach and compare them, and one that the platform has nothing to do with.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, chmodSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseServer } from '../../../drivers/database';
import { serverDirectoryOf, socketOf } from '../../../drivers/hosted_server/server_directory';
import { until } from '../builds/runtime';

/** How to reach a server as its administrator. */
export interface Reached {
  socket: string;
  user: string;
  password: string;
  database: string;
}

/** The platform's own way to one of its servers. */
export function reachedAsAdmin(directory: string, { id, admin_password, database_name }: DatabaseServer): Reached {
  const socket = socketOf(serverDirectoryOf({ directory }, id));
  return { socket, user: `platform_${id}`, password: admin_password, database: String(database_name) };
}

export function runClient(program: string, reached: Reached, options: string[], input?: Buffer): Buffer {
  const login = [
    '--no-defaults',
    `--socket=${reached.socket}`,
    `--user=${reached.user}`,
    '--default-character-set=utf8mb4',
  ];
  return execFileSync(program, [...login, ...options, reached.database], {
    env: { ...process.env, MYSQL_PWD: reached.password },
    maxBuffer: 1 << 30,
    input,
  });
}

export interface Content {
  /** As mariadb-dump prints it. */
  structure: string[];
  /** Digest of all rows, which are in no order. */
  rows: string;
  /** What information_schema says and a dump does not. */
  schema: string[];
  checksums: string[];
}

export function contentOf(reached: Reached): Content {
  const options = ['--skip-comments', '--order-by-primary', '--routines', '--events', '--triggers', '--dump-history'];
  const dumped = runClient('mariadb-dump', reached, [...options, '--max-allowed-packet=1G']);
  const lines = dumped.toString('latin1').split('\n');
  const isRow = (line: string): boolean => /^(INSERT INTO|\()/.test(line);
  const ask = (statement: string): string[] =>
    runClient('mariadb', reached, ['-N', '-r', '-e', statement]).toString().trimEnd().split('\n');
  const rows = lines.filter(isRow).map((line) => line.replace(/[,;]$/, ''));
  const tables = ask(
    `SELECT CONCAT('\`', REPLACE(TABLE_NAME, '\`', '\`\`'), '\`') FROM information_schema.TABLES
      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE NOT IN ('VIEW', 'SEQUENCE') AND TABLE_NAME NOT LIKE 'new%'
        AND TABLE_NAME NOT LIKE 'many%' ORDER BY TABLE_NAME`,
  );
  return {
    structure: lines.filter((line) => !isRow(line)),
    rows: createHash('sha256').update(rows.sort().join('\n')).digest('hex'),
    schema: ask(detailsOfSchema),
    checksums: ask(`CHECKSUM TABLE ${tables.join(', ')} EXTENDED`),
  };
}

const detailsOfSchema = `
  SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, SCHEMA_COMMENT FROM information_schema.SCHEMATA
    WHERE SCHEMA_NAME = DATABASE();
  SELECT TABLE_NAME, TABLE_TYPE, ENGINE, ROW_FORMAT, CREATE_OPTIONS, TABLE_COLLATION, TABLE_COMMENT
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE <> 'VIEW' ORDER BY 1;
  SELECT EVENT_NAME, DEFINER, STATUS, SQL_MODE, CHARACTER_SET_CLIENT, DATABASE_COLLATION
    FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE() ORDER BY 1;
  SELECT SPECIFIC_NAME, DEFINER, SECURITY_TYPE, SQL_MODE, CHARACTER_SET_CLIENT, DATABASE_COLLATION,
    MD5(ROUTINE_DEFINITION) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1;
  SELECT TRIGGER_NAME, ACTION_ORDER, SQL_MODE, DEFINER, CHARACTER_SET_CLIENT, MD5(ACTION_STATEMENT)
    FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() ORDER BY 1;
  SELECT TABLE_NAME, DEFINER, SECURITY_TYPE, CHECK_OPTION, ALGORITHM, VIEW_DEFINITION
    FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1`;

/** A server as its package makes it, with an empty database. */
export async function openStockMariadb(database: string): Promise<Reached & { close(): void }> {
  const directory = mkdtempSync('/tmp/platform-stock-');
  chmodSync(directory, 0o777);
  const data = path.join(directory, 'data');
  const user = process.getuid?.() === 0 ? ['--user=mysql'] : [];
  const install = ['--no-defaults', ...user, `--datadir=${data}`, '--skip-test-db'];
  execFileSync('mariadb-install-db', install, { stdio: 'ignore' });
  const socket = path.join(directory, 'server.sock');
  const options = ['--skip-networking', `--socket=${socket}`, '--max-allowed-packet=1G'];
  const server = spawn('/usr/sbin/mariadbd', ['--no-defaults', ...user, `--datadir=${data}`, ...options], {
    stdio: 'ignore',
  });
  const close = (): void => {
    server.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  const login = { socket, user: process.getuid?.() === 0 ? 'root' : String(process.env.USER), password: '' };
  const create = [`CREATE DATABASE \`${database}\``];
  await until(async () => {
    try {
      runClient('mariadb', { ...login, database: 'mysql' }, ['-e', create.join(';')]);
      return true;
    } catch {
      return false;
    }
  });
  return { ...login, database, close };
}
