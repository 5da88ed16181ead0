// The program of a PostgreSQL in a pod, its configuration, and the script that makes its data.
import path from 'node:path';
import type { DatabaseServer } from '../../../database';
import { POD_CONF, POD_DATA, USER, type PodProgram } from '../../kubernetes/objects';
import type { PodEngine } from '../../kubernetes/pod_engine';
import { digest } from '../../proxied_server';
import { roles } from '../cluster';
import { quoted, sizes } from '../configuration';
import { initdbArguments } from '../data';
import { sqlString } from '../session';
import { shellQuoted } from '../../../hosted_server/driver';

/** The data, in a directory of the disk: that itself belongs to root, and may have a lost+found. */
export const DATA = `${POD_DATA}/pgdata`;
/** A file beside the data: they are of a backup, and no server has begun with them. */
export const RESTORED = `${POD_DATA}/restored`;
const files = {
  config: 'postgresql.conf',
  hba: 'pg_hba.conf',
  certificate: 'server.crt',
  key: 'server.key',
  start: 'start.sh',
  password: 'admin_password',
  restored: 'restored.sql',
  passwd: 'passwd',
  initialize: 'initialize',
} as const;

/** @param isNew an empty disk is as it should be */
export function programOf(
  engine: PodEngine,
  server: DatabaseServer,
  { claim, image, isNew }: { claim: string; image: string; isNew: boolean },
): PodProgram {
  const config = configuration(engine, server);
  return {
    ...{ image, port: server.port, claim, sharesMemory: true },
    command: ['sh', conf(files.start)],
    // A fast shutdown: SIGTERM would wait for all clients to leave.
    beforeStop: ['sh', '-c', 'kill -INT 1'],
    // initdb demands that its user has a name.
    replacing: { '/etc/passwd': files.passwd },
    files: {
      [files.config]: config,
      [files.hba]: accessRules(),
      [files.certificate]: server.tls.certificate,
      [files.key]: server.tls.key,
      [files.start]: startScript(server),
      [files.password]: `${server.admin_password}\n`,
      [files.restored]: restoredStatements(server),
      [files.passwd]: `root:x:0:0::/:/bin/sh\npostgres:x:${USER}:${USER}::${POD_DATA}:/bin/sh\n`,
      ...(isNew && { [files.initialize]: '' }),
    },
    // A new certificate is read without a restart.
    digest: digest([config, accessRules()].join('\n')),
  };
}

const conf = (name: string): string => path.posix.join(POD_CONF, name);

function configuration(engine: PodEngine, server: DatabaseServer): string {
  const settings: Record<string, string | number> = {
    ...{ port: server.port, listen_addresses: '*', unix_socket_directories: '' },
    ...{ hba_file: conf(files.hba), cluster_name: server.id },
    ...{ ssl: 'on', ssl_cert_file: conf(files.certificate), ssl_key_file: conf(files.key) },
    ...{ ssl_min_protocol_version: 'TLSv1.2', password_encryption: 'scram-sha-256' },
    ...{ lc_messages: 'C', timezone: 'UTC', log_timezone: 'UTC' },
    ...sizes({ spec: server, engine }),
    // The cluster keeps what it prints.
    ...{ logging_collector: 'off', log_destination: 'stderr', log_line_prefix: '%m [%p] %u@%d %e ' },
    ...{ log_min_duration_statement: '1s', log_lock_waits: 'on' },
    ...{ wal_level: 'replica', max_wal_senders: 10, max_replication_slots: 10, wal_log_hints: 'on' },
    ...(server.preloaded && { shared_preload_libraries: server.preloaded.join(',') }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${quoted(value)}\n`)
    .join('');
}

/** Who reaches the pod, the cluster decides. The first matching line applies (PostgreSQL, "The pg_hba.conf File"). */
function accessRules(): string {
  return [
    `hostssl all ${roles.admin} all scram-sha-256`,
    `hostssl replication ${roles.admin} all scram-sha-256`,
    `host all ${roles.replication} all reject`,
    'hostssl all all all scram-sha-256',
    '',
  ].join('\n');
}

/**
 * For a single-user session, where each line is a command: the administrator of a backup has another password or, from
 * a host, none; users get theirs once the server is as it should be, and cannot log in before.
 */
function restoredStatements({ admin_password }: DatabaseServer): string {
  const forgetAll =
    'do $$ declare one record; begin for one in select rolname from pg_authid where rolpassword is not null and ' +
    `rolname <> ${sqlString(roles.admin)} loop execute format('alter role %I password null', one.rolname); ` +
    'end loop; end $$';
  return `alter role ${roles.admin} login superuser password ${sqlString(admin_password)}\n${forgetAll}\n`;
}

/** Killed at any point, the next start goes on. Modes are set anew: the cluster may have changed those of the disk. */
function startScript({ version }: DatabaseServer): string {
  const initdb = ['initdb', '-D', `${DATA}.new`, '--auth=scram-sha-256', `--pwfile=${conf(files.password)}`];
  const config = `config_file=${conf(files.config)}`;
  const single = ['postgres', '--single', '-D', DATA, '-c', config, '-c', 'exit_on_error=on'];
  const quiet = ['-c', 'log_min_error_statement=panic', '-c', 'log_min_duration_statement=-1', 'postgres'];
  return `set -eu
umask 077
if test ! -e ${DATA}; then
  if test ! -e ${conf(files.initialize)}; then
    echo "FATAL: the disk of the database is empty" >&2
    exit 1
  fi
  rm -rf ${DATA}.new
  if ! said=$(${[...initdb, ...initdbArguments({ series: version })].map(shellQuoted).join(' ')} 2>&1); then
    echo "$said" >&2
    exit 1
  fi
  mv ${DATA}.new ${DATA}
  sync
fi
chmod 0700 ${DATA}
if test -e ${RESTORED}; then
  ${[...single, ...quiet].map(shellQuoted).join(' ')} < ${conf(files.restored)} > /dev/null
  rm ${RESTORED}
  sync
fi
exec postgres -D ${DATA} -c ${config}
`;
}
