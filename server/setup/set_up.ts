// `platform setup`: from a domain to an installation that is reached by its names over HTTPS. Nothing changes before
// all checks have passed, and what changes is taken back where it does not work.
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, type Config } from '../../core/config';
import { StartupError } from '../../core/startup_error';
import { checkAuthority, readRoots } from './authority';
import { checkDelegations, type ReadDelegation } from './check_delegations';
import { caaProblem, checkRecords, textOfOpenRecords, type NameCheck } from './check_records';
import { apiProblem, httpsProblem } from './https_ready';
import { listenerOf } from './ports';
import { setupPlanOf, type Choice, type Plan } from './plan';
import { openReach, requireFreeOrOurs, type Reach } from './reach';
import { recordTable, zoneLines } from './record_text';
import { sharedSiteWarning } from '../platform/shared_site';
import type { ServiceControl } from './service_unit';
import type { SettingsFile } from './settings_file';
import { conflictsWith, readSettings, withSettings } from './settings_text';
import { SetupError } from './setup_error';
import { switchOver, type SwitchOver } from './switch_over';

export interface Parts extends Pick<
  SwitchOver,
  'signal' | 'report' | 'certificateError' | 'httpsWithinMs' | 'move' | 'follow'
> {
  /** null in a checkout, whose settings are in nobody's file. */
  settings: SettingsFile | null;
  /** null where no service manager runs the service. */
  service: ServiceControl | null;
  /** Settings of a checkout. */
  environment: Record<string, string | undefined>;
  resolvers: readonly string[];
  timeSources: readonly string[];
  delegation: ReadDelegation;
  /** Addresses of the network interfaces of this machine. */
  interfaces: readonly string[];
  /** Address on which ports that are free answer the checks; default: all. */
  listenOn?: string;
  /** What the ingress answers to a token of setup. */
  proof(token: string): string | null;
  /** How long the records are waited for. 0: they are checked once. */
  recordsWithinMs: number;
  pollMs?: number;
}

export type Outcome = 'checked' | 'unchanged' | 'set_up' | 'written' | 'by_hand';

export interface SetUpOptions {
  /** Change nothing. */
  checkOnly: boolean;
  /** The operator's own lines that say otherwise become comments. */
  force: boolean;
}

const POLL_MS = 5_000;
const STILL_WAITING_MS = 60_000;
/** A start takes seconds. */
const READY_WITHIN_MS = 30_000;

/** @throws SetupError: nothing has changed then, or what has was taken back */
export async function setUpInstallation(
  choice: Choice,
  { checkOnly, force }: SetUpOptions,
  parts: Parts,
): Promise<Outcome> {
  const { settings, report } = parts;
  const text = settings?.read() ?? '';
  const before = configOf(settings ? readSettings(text) : parts.environment);
  const plan = setupPlanOf(choice, before);
  await leaveOutTakenMailPorts(plan, before, report);
  const changed = settings ? changedText(text, plan, force) : null;
  const now = configOf(settings ? readSettings(changed as string) : { ...parts.environment, ...plan.settings });
  reportPlan(plan, now, report);
  const isWritten = settings !== null && changed === text;
  const roots = choice.acmeCaFile === null ? null : readRoots(choice.acmeCaFile);
  if (isWritten && !checkOnly && !settings.isOnTrial() && (await isServed(now, plan, roots))) return 'unchanged';
  await check(plan, before, parts);
  if (checkOnly) return 'checked';
  if (parts.signal.aborted) throw new SetupError('Interrupted. Nothing was changed.');
  if (!settings) return 'by_hand';
  if (!parts.service) {
    if (!isWritten) await writeForGood(settings, changed as string);
    return 'written';
  }
  const origin = settings.isOnTrial() ? configOf(readSettings(settings.readBefore())) : before;
  await switchOver({
    ...parts,
    ...{ settings, service: parts.service, before: origin, now, roots, platformHost: plan.platformHost },
    text: isWritten ? null : (changed as string),
  });
  return 'set_up';
}

/** @throws SetupError with every malformed setting */
function configOf(environment: Record<string, string | undefined>): Config {
  try {
    return loadConfig(environment);
  } catch (error) {
    if (error instanceof StartupError) throw new SetupError(`The settings are not in order: ${error.message}`);
    throw error;
  }
}

/** Mail is not worth more than the dashboard: where a mail server has its port, mail stays on this machine. */
async function leaveOutTakenMailPorts(plan: Plan, config: Config, report: Parts['report']): Promise<void> {
  if (!plan.settings.SMTP_LISTEN) return;
  for (const port of [...config.smtpPorts.map((one) => one.port), ...(config.mxPort ? [config.mxPort] : [])]) {
    if (!(await listenerOf(port))) continue;
    try {
      await requireFreeOrOurs(port, config.runtimeDir);
    } catch (error) {
      report(`${(error as Error).message} Until then the platform takes mail from this machine alone (SMTP_LISTEN).`);
      delete plan.settings.SMTP_LISTEN;
      return;
    }
  }
}

/** @throws SetupError where lines of the operator say otherwise */
function changedText(text: string, { settings }: Plan, force: boolean): string {
  const conflicts = conflictsWith(text, settings);
  const said = conflicts.map(({ name, value, wanted }) => `${name}=${value} (needed: ${wanted})`).join(', ');
  if (conflicts.length && !force)
    throw new SetupError(
      `The file of settings has ${said}. Remove these lines, or call this with --force, which makes them comments.`,
    );
  return withSettings(text, settings);
}

async function isServed(now: Config, plan: Plan, roots: string | null): Promise<boolean> {
  const problems = await Promise.all([apiProblem(now), httpsProblem(now, plan.platformHost, roots)]);
  return problems.every((problem) => problem === null);
}

function reportPlan({ records, domain, addresses }: Plan, now: Config, report: Parts['report']): void {
  report(`Records of ${domain}, for the form of its DNS provider:\n\n${recordTable(records, domain)}\n`);
  report(`The same as lines of a zone file:\n\n${zoneLines(records)}\n`);
  if (!addresses.length)
    report('This machine has no public address of its own. Name the address of the router in front with --ip.\n');
  const shared = sharedSiteWarning(now);
  if (shared) report(`${shared} --apps-domain names it.\n`);
}

/** @throws SetupError for the first thing that is in the way */
async function check(plan: Plan, before: Config, parts: Parts): Promise<void> {
  const { report, timeSources, resolvers } = parts;
  const [httpPort, tlsPort] = [Number(plan.settings.INGRESS_PORT), Number(plan.settings.INGRESS_TLS_PORT)];
  const { runtimeDir } = before;
  const { proof, listenOn } = parts;
  const reach = await openReach({ httpPort, tlsPort, runtimeDir, listenOn, proof });
  try {
    report(`Ports ${httpPort} and ${tlsPort} are free, or the platform has them.`);
    const { terms, identities } = await checkAuthority(plan.acmeDirectory, plan.acmeCaFile, timeSources);
    report(`The certificate authority ${new URL(plan.acmeDirectory).host} answers, and the clock is right.`);
    if (terms !== null) report(`Going on accepts its terms of service: ${terms}`);
    const names = await waitForRecords(plan, parts);
    const forbidden = await caaProblem(plan, identities, resolvers);
    if (forbidden !== null) throw new SetupError(forbidden);
    // A call that was killed may have left the service in the middle of its start.
    const silent = reach.isIngress ? await waitForApi(before, parts) : null;
    if (silent === null) await checkReach(names, reach, plan, parts);
    else report(`The service is not ready (${silent}), so it is not known whether the names lead to it.`);
  } finally {
    await reach.close();
  }
}

async function waitForRecords(plan: Plan, parts: Parts): Promise<NameCheck[]> {
  const { resolvers, delegation, recordsWithinMs, signal, report, pollMs = POLL_MS } = parts;
  const told = new Map<string, string>();
  const end = performance.now() + recordsWithinMs;
  for (let remindedAt = performance.now(); ;) {
    const names = await Promise.all([
      checkRecords(plan, resolvers),
      checkDelegations(plan, resolvers, delegation),
    ]).then((found) => found.flat());
    for (const { name, detail } of names)
      if (told.get(name) !== detail) {
        report(detail);
        told.set(name, detail);
      }
    const open = names.filter(({ status }) => status !== 'ok');
    if (!open.length) return names;
    if (signal.aborted) throw new SetupError('Interrupted. Nothing was changed.');
    if (performance.now() >= end) throw new SetupError(`${textOfOpenRecords(open)} Nothing was changed.`);
    if (performance.now() - remindedAt > STILL_WAITING_MS) {
      remindedAt = performance.now();
      report(`Still waiting for ${open.map(({ name }) => name).join(', ')}. Ctrl-C leaves everything as it is.`);
    }
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

/** @returns why it is not ready */
async function waitForApi(config: Config, { signal }: Parts): Promise<string | null> {
  const end = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const problem = await apiProblem(config);
    if (problem === null || signal.aborted || performance.now() > end) return problem;
    await sleep(1_000, undefined, { signal }).catch(() => undefined);
  }
}

async function checkReach(names: NameCheck[], reach: Reach, plan: Plan, { interfaces, report }: Parts): Promise<void> {
  const problems = await Promise.all(
    names.flatMap(({ name, addresses }) => {
      const host = name.startsWith('*.') ? `setup.${name.slice(2)}` : name;
      return addresses.map((address) => reach.problem(host, address, interfaces.includes(address)));
    }),
  );
  const problem = problems.find((one) => one !== null);
  if (problem) throw new SetupError(`${problem} Nothing was changed.`);
  report(
    plan.addresses.length && plan.addresses.every((address) => interfaces.includes(address))
      ? 'All names lead to this machine.'
      : 'All names lead to the addresses given; the certificate authority finds out whether they are reached.',
  );
}

async function writeForGood(settings: SettingsFile, text: string): Promise<void> {
  await settings.write(text);
  await settings.keep();
}
