// How far applications are apart on this host, and what of the optional programs it lacks: said once, at the start.
import type { FileIsolation } from '../../core/catalog/catalogs';
import { missingPrograms } from '../../core/catalog/missing_programs';
import { named } from '../../db/statement';
import { driverContext } from '../../core/driver';
import { setupCommand } from '../../core/catalog/setup_command';
import type { RuntimeDriver } from '../../drivers/runtime';
import type { Platform } from '../platform/platform';

const FINGERPRINT_MS = 5_000;
const REPORT = named(`insert into region_networks as r (region_id, isolation, egress, files, own_ports)
  values ($1, $2, $3, $4, $5)
  on conflict (region_id) do update
  set isolation = excluded.isolation, egress = excluded.egress, files = excluded.files,
    own_ports = excluded.own_ports, reported_at = excluded.reported_at`);

const SEPARATE_FILES: Record<FileIsolation, string | null> = {
  sandbox: null,
  user: 'Applications see the files of the host that its permissions allow.',
  none: 'Applications can read and change the files of all projects.',
};

interface Isolation {
  files: FileIsolation;
  network: 'project' | 'none';
  egress: boolean;
}

/** Logs missing isolation and missing optional programs, and reports the isolation for `GET /v2/regions`. */
export async function reportIsolation(
  { config, database, log, engines }: Pick<Platform, 'config' | 'database' | 'log' | 'engines'>,
  runtime: RuntimeDriver,
): Promise<void> {
  const { files, network, egress } = await isolationOf(runtime);
  await database.query(REPORT, [config.regionId, network, egress, files, runtime.exposesPorts]);
  const missing = missingPrograms(await engines(), process.getuid?.() === 0);
  const open = [
    SEPARATE_FILES[files],
    network === 'none' ? 'Projects share the network of the host.' : null,
    missing.length ? 'Optional programs are missing.' : null,
  ].filter((sentence) => sentence !== null);
  if (open.length === 0) return;
  const install = missing.length ? { missing: missing.map(({ name }) => name), install: setupCommand() } : {};
  log[files === 'sandbox' && network === 'project' ? 'info' : 'warn'](
    { file_isolation: files, network_isolation: network, ...install },
    open.join(' '),
  );
}

async function isolationOf(runtime: RuntimeDriver): Promise<Isolation> {
  const { sandbox, users, network, way_out } = (await runtime.fingerprint(driverContext(FINGERPRINT_MS))).facts;
  const withoutSandbox = users === 'one_each' ? 'user' : 'none';
  return {
    files: sandbox === 'none' ? withoutSandbox : 'sandbox',
    network: network === 'shared' ? 'none' : 'project',
    egress: way_out === true,
  };
}
