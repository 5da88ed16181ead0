// The domain of the installation, set up from the dashboard. It is `platform setup` in a transient unit of systemd: a
// process beside the service, since it restarts it.
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import path from 'node:path';
import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import { problem } from '../../core/errors';
import type { DomainChoice, DomainPlan, InstallationControl } from '../../core/catalog/installation_control';
import { run } from '../../core/process/command';
import { findInstallation, installationOrNull, type Installation } from '../upgrade/installation';
import { readJournal } from '../upgrade/journal';
import { checkDelegations, delegationReader } from '../setup/check_delegations';
import { checkRecords } from '../setup/check_records';
import { parseDomain } from '../setup/domain';
import { canonicalAddress, PUBLIC_RESOLVERS } from '../setup/lookup';
import { lastingPublicAddresses, nameServerAddresses } from '../setup/own_addresses';
import { DEFAULT_DIRECTORY, hasNameServer, setupPlanOf, USUAL_PORTS, type Plan } from '../setup/plan';
import { serviceUnit } from '../setup/service_unit';
import { settingsFileOf } from '../setup/settings_file';
import { SetupError } from '../setup/setup_error';
import { readSetupRun, writeSetupRun, type SetupRun } from '../setup/setup_journal';

type Setups = Pick<InstallationControl, 'setupObstacle' | 'planSetup' | 'beginSetup' | 'setupProgress'>;

const UNIT = 'platform-setup';
const WITHIN_MS = 10_000;
const CUT_OFF = 'It was cut off. Start it again: it goes on where it stands, or takes back what it has changed.';

export function setupsOf(config: Config): Setups {
  return {
    setupObstacle: obstacle,
    async planSetup(choice) {
      const plan = planOf(choice, config);
      const resolvers = config.dnsResolvers.length ? config.dnsResolvers : PUBLIC_RESOLVERS;
      const read = delegationReader(config, plan.domain, resolvers);
      const checks = [checkRecords(plan, resolvers), checkDelegations(plan, resolvers, read)];
      return shown(plan, (await Promise.all(checks)).flat());
    },
    async beginSetup(choice, tokenHash) {
      const plan = planOf(choice, config);
      const reason = obstacle();
      if (reason !== null) throw problem('engine_unavailable', reason);
      const installation = findInstallation();
      await requireIdle(installation);
      const given = words(plan, choice);
      const started = newRun(tokenHash, addressOf(plan));
      await writeSetupRun(installation, started);
      await start(installation, started, given);
      return started.address;
    },
    async setupProgress(tokenHash) {
      const installation = installationOrNull();
      const found = installation && readSetupRun(installation);
      if (!found || found.token_hash !== tokenHash) return null;
      const { outcome, lines, reason, address } = found;
      if (outcome !== 'running' || (await isSetupRunning())) return { outcome, lines, reason, address };
      // It may have ended since the file was read.
      const again = readSetupRun(installation) ?? found;
      if (again.outcome !== 'running') return { ...again };
      return { outcome: 'failed', lines, reason: CUT_OFF, address };
    },
  };
}

function obstacle(): string | null {
  const command = 'platform setup --domain example.com';
  if (installationOrNull() === null)
    return 'The settings of a checkout or a container are in no file that the platform may change.';
  if (process.getuid?.() !== 0)
    return `The service does not run as root, so it cannot change its settings. As root: ${command}`;
  if (serviceUnit() === null || settingsFileOf() === null || !existsSync(settingsFileOf() as string))
    return `systemd does not run the service, so nothing here could restart it. On its machine: ${command}`;
  return null;
}

/** @throws validation_failed on the field that is wrong */
function planOf({ domain, apps_domain, email, ips, name_server }: DomainChoice, config: Config): Plan {
  const given = (ips ?? []).map((text) => text.trim()).filter(Boolean);
  if (given.some((address) => !isIP(address))) throw wrong('ips', 'must be IP addresses');
  const addresses = given.length ? given.map(canonicalAddress) : lastingPublicAddresses();
  const choice = {
    domain: parsed('domain', domain),
    ...(apps_domain && { appsDomain: parsed('apps_domain', apps_domain) }),
    email: email ?? config.acmeEmail,
    addresses,
    acmeDirectory: config.acmeDirectory ?? DEFAULT_DIRECTORY,
    acmeCaFile: config.acmeCaFile,
    ...{
      nameServer: name_server === true || hasNameServer(config),
      listen: nameServerAddresses(addresses),
      ports: USUAL_PORTS,
    },
  };
  try {
    return setupPlanOf(choice, config);
  } catch (error) {
    throw error instanceof SetupError ? wrong('apps_domain', error.message) : error;
  }
}

function parsed(field: string, text: string): string {
  try {
    return parseDomain(text, field);
  } catch (error) {
    throw error instanceof SetupError ? wrong(field, error.message.replace(`${field} `, '')) : error;
  }
}

function wrong(field: string, detail: string): Error {
  return problem('validation_failed', undefined, {
    errors: [{ field, code: 'invalid_format', detail }],
  });
}

function addressOf({ platformHost }: Plan): string {
  return `https://${platformHost}`;
}

function shown(plan: Plan, names: DomainPlan['names']): DomainPlan {
  return {
    address: addressOf(plan),
    records: plan.records.map(({ name, type, value, purpose }) => ({ name, type, value, purpose })),
    names: names.map(({ name, status, detail }) => ({ name, status, detail })),
    settings: Object.entries(plan.settings).map(([name, value]) => ({ name, value })),
  };
}

/** Of values that were parsed: none begins with a dash, and systemd finds nothing in them to replace. */
function words(plan: Plan, { ips, email }: DomainChoice): string[] {
  const given = [
    `--domain=${plan.domain}`,
    `--apps-domain=${plan.appsDomain}`,
    ...(email ? [`--email=${email}`] : []),
    ...(ips?.length && plan.addresses.length ? [`--ip=${plan.addresses.join(',')}`] : []),
  ];
  const strange = given.find((word) => !/^--[a-z-]+=[A-Za-z0-9._+@:,-]+$/.test(word));
  if (strange !== undefined) throw wrong('email', 'has characters that only the command takes');
  return plan.nameServer ? [...given, '--name-server'] : given;
}

function newRun(token_hash: string, address: string): SetupRun {
  const started_at = new Date().toISOString();
  return { token_hash, address, lines: [], outcome: 'running', reason: null, started_at };
}

/** @throws invalid_state */
async function requireIdle(installation: Installation): Promise<void> {
  if (await isSetupRunning()) throw problem('invalid_state', 'A setup is under way.');
  if (readJournal(installation, 'state') !== null)
    throw problem('invalid_state', 'An upgrade or rollback is under way. Set the domain up when it has ended.');
}

export async function isSetupRunning(): Promise<boolean> {
  const words = ['show', `${UNIT}.service`, '--property=ActiveState'];
  const text = await run('systemctl', words, driverContext(WITHIN_MS)).catch(() => '');
  return /=(?:active|activating|deactivating|reloading)$/m.test(text);
}

async function start(installation: Installation, started: SetupRun, given: string[]): Promise<void> {
  const program = path.join(installation.prefix, 'current', 'bin', 'platform');
  // Its output may have the address with the code of the first start. A database server that it starts outlives it.
  const properties = [
    'Type=exec',
    'StandardOutput=null',
    'StandardError=journal',
    'KillMode=process',
    'WorkingDirectory=/',
  ];
  const again = ['Restart=on-abnormal', 'RestartSec=1'];
  const unit = [
    '--quiet',
    '--collect',
    `--unit=${UNIT}`,
    ...[...properties, ...again].map((one) => `--property=${one}`),
  ];
  try {
    await run('systemd-run', [...unit, '--', program, 'setup', ...given, '--journal'], driverContext(WITHIN_MS));
  } catch {
    const reason = 'systemd could not start the setup. `journalctl -n 20` on the machine says why.';
    await writeSetupRun(installation, { ...started, outcome: 'failed', reason });
    throw problem('engine_unavailable', reason);
  }
}
