// Gives the installation its domain, names and certificates.
import { accessSync, constants, existsSync } from 'node:fs';
import path from 'node:path';
import { isIP } from 'node:net';
import { loadConfig, type Config } from '../../core/config';
import { formats } from '../../core/formats/formats';
import { loadKeyRing, secretBox } from '../../core/secrets';
import { named } from '../../db/statement';
import { readFirstStart } from '../first_boot';
import { parseDomain } from '../setup/domain';
import { delegationReader } from '../setup/check_delegations';
import { followAddress, moveDefaultNames } from '../setup/follow_names';
import { canonicalAddress, PUBLIC_RESOLVERS } from '../setup/lookup';
import { lastingPublicAddresses, nameServerAddresses, ownAddresses } from '../setup/own_addresses';
import { DEFAULT_DIRECTORY, hasNameServer, setupPlanOf, USUAL_PORTS, type Choice, type Plan } from '../setup/plan';
import { proofOf } from '../platform/setup_proof';
import { openSetupJournal } from '../setup/setup_journal';
import { serviceUnit } from '../setup/service_unit';
import { openSettingsFile, settingsFileOf } from '../setup/settings_file';
import { SetupError } from '../setup/setup_error';
import { setUpInstallation, type Outcome, type Parts } from '../setup/set_up';
import { CommandError } from '../command_error';
import { UsageError, type Command, type Input, type Output } from './command';
import { inDatabase } from './open';
import { noteOfInstallation } from './terminal_activity';
import { terminalText } from './print';
import { findInstallation } from '../upgrade/installation';

const RECORDS_WITHIN_MS = 1_800_000;
const RECORDS_SEEN_WITHIN_MS = 60_000;
/** They say the time over plain HTTP, at an address that no resolver has to find. */
const TIME_SOURCES = ['http://1.1.1.1/', 'http://9.9.9.9/'];
const REFUSAL = named('select reason from certificates where id = $1 and chain is null');

export const commands: Command[] = [
  {
    name: 'setup',
    summary:
      'Give the installation its domain: say which DNS records to make, wait for them, check ports and clock, order ' +
      'certificates, restart. What does not work is taken back.',
    options: {
      domain: {
        value: 'example.com',
        description: 'The dashboard becomes https://platform.example.com.',
        required: true,
      },
      email: { value: 'address', description: 'Where the certificate authority writes to. Default: nowhere.' },
      'apps-domain': {
        value: 'name',
        description: 'Domain below which applications get their names; default: apps. and the domain.',
      },
      ip: {
        value: 'addresses',
        description: 'Public addresses of this machine, separated by commas; default: those of its interfaces.',
      },
      'acme-directory': {
        value: 'URL',
        description: `Certificate authority (RFC 8555), whose terms you accept; default: ${DEFAULT_DIRECTORY}`,
      },
      'acme-ca': { value: 'file', description: 'Root certificates (PEM) of an authority that browsers do not know.' },
      'name-server': { value: null, description: 'Also serve DNS zones of customers, below dns. and the domain.' },
      check: { value: null, description: 'Show the records and check everything once; change nothing.' },
      force: { value: null, description: 'Replace lines of platform.env that say otherwise.' },
      journal: { value: null, description: 'What the dashboard runs: notes beside the release how far it is.' },
    },
    run: (input) => (input.has('journal') ? noted(input) : setup(input, print)).catch(asCommandError),
  },
];

function asCommandError(error: unknown): never {
  throw error instanceof SetupError ? new CommandError(error.message) : error;
}

/** For the page of the dashboard, which asks while the service restarts. */
async function noted(input: Input): Promise<Output> {
  const journal = openSetupJournal(findInstallation());
  try {
    const output = await setup(input, (line) => {
      print(line);
      journal.append(line);
    });
    await journal.end('done', null);
    return output;
  } catch (error) {
    await journal.end('failed', error instanceof Error ? error.message : String(error));
    throw error;
  }
}

async function setup(input: Input, report: Report): Promise<Output> {
  const file = settingsFileOf();
  const checkOnly = input.has('check');
  const config = loadConfig(process.env);
  const choice = choiceOf(input, config);
  if (file !== null && !checkOnly && !isWritable(file))
    throw new CommandError(`Only root can change ${file} and restart the service: run this command as root.`);
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  const plan = setupPlanOf(choice, config);
  const outcome = await setUpInstallation(
    choice,
    { checkOnly, force: input.has('force') },
    partsOf(file, config, plan, {
      report,
      signal: interrupted.signal,
      recordsWithinMs: recordsWithinMsOf(input),
    }),
  );
  if (outcome === 'set_up')
    await inDatabase((ctx) => noteOfInstallation(ctx.sql, 'installation.set_up', plan.platformHost)).catch(() =>
      report('It could not be noted in the activity.'),
    );
  report(ENDS[outcome]);
  return outputOf(outcome, plan, config);
}

function isWritable(file: string): boolean {
  try {
    accessSync(existsSync(file) ? file : path.dirname(file), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const ENDS: Record<Outcome, string> = {
  checked: 'Everything is in order. Nothing was changed.',
  unchanged: 'The installation has these names already, with valid certificates. Nothing was changed.',
  set_up: 'The installation has its domain.',
  written: 'The settings are written, but nothing here restarts the service: stop it, and start it again.',
  by_hand: 'Nothing was changed: no file has the settings of a checkout. Start the service with these:',
};

type Report = Parts['report'];

/** Whoever starts it on the page has seen there that the records are made. */
function recordsWithinMsOf(input: Input): number {
  if (input.has('check')) return 0;
  return input.has('journal') ? RECORDS_SEEN_WITHIN_MS : RECORDS_WITHIN_MS;
}

/** Progress, beside the result on standard output. */
function print(line: string): void {
  process.stderr.write(`${terminalText(line)}\n`);
}

function choiceOf(input: Input, config: Config): Choice {
  const appsDomain = input.text('apps-domain');
  const directory = input.text('acme-directory') ?? config.acmeDirectory ?? DEFAULT_DIRECTORY;
  if (!formats.url(directory)) throw new UsageError(`--acme-directory ${directory} is not a URL`);
  const email = input.text('email') ?? config.acmeEmail;
  const address = email === null ? null : formats.email(email);
  if (email !== null && !address) throw new UsageError(`--email ${email} is not an e-mail address`);
  const caFile = input.text('acme-ca');
  const addresses = addressesOf(input.text('ip'));
  return {
    domain: parseDomain(input.text('domain') ?? '', '--domain'),
    ...(appsDomain !== undefined && { appsDomain: parseDomain(appsDomain, '--apps-domain') }),
    email: address?.value ?? null,
    addresses,
    acmeDirectory: directory,
    acmeCaFile: caFile === undefined ? config.acmeCaFile : path.resolve(caFile),
    nameServer: input.has('name-server') || hasNameServer(config),
    listen: nameServerAddresses(addresses),
    ports: USUAL_PORTS,
  };
}

/** @throws UsageError */
function addressesOf(text: string | undefined): string[] {
  if (text === undefined) return lastingPublicAddresses();
  const given = text.split(/[\s,]+/).filter(Boolean);
  const wrong = given.find((address) => !isIP(address));
  if (wrong !== undefined) throw new UsageError(`--ip ${wrong} is not an IP address`);
  return given.map(canonicalAddress);
}

function partsOf(
  file: string | null,
  config: Config,
  { domain, platformHost }: Plan,
  own: Pick<Parts, 'report' | 'signal' | 'recordsWithinMs'>,
): Parts {
  const hasKey = config.secretKey !== null || existsSync(path.join(config.dataDir, 'secret-key'));
  const secrets = hasKey ? secretBox(loadKeyRing({ setting: config.secretKey, dataDir: config.dataDir })) : null;
  const resolvers = config.dnsResolvers.length ? config.dnsResolvers : PUBLIC_RESOLVERS;
  return {
    settings: file === null ? null : openSettingsFile(file),
    service: file === null ? null : serviceUnit(),
    environment: process.env,
    resolvers,
    delegation: delegationReader(config, domain, resolvers),
    timeSources: config.dnsResolvers.length ? [] : TIME_SOURCES,
    interfaces: ownAddresses(),
    proof: (token) => (secrets ? proofOf(secrets, token) : null),
    move: (settings) => inDatabase((ctx) => moveDefaultNames(ctx.sql, settings)),
    follow: (before, now) => inDatabase((ctx) => followAddress(ctx.sql, before, now)),
    ...own,
    certificateError: () => refusalOf(platformHost),
  };
}

function refusalOf(name: string): Promise<string | null> {
  return inDatabase(async (ctx) => {
    const [row] = await ctx.sql.query<{ reason: string | null }>(REFUSAL, [name]);
    return row?.reason ?? null;
  });
}

async function outputOf(outcome: Outcome, plan: ReturnType<typeof setupPlanOf>, config: Config): Promise<Output> {
  const { platformHost, appsDomain, settings, records } = plan;
  if (outcome === 'by_hand') return { rows: Object.entries(settings).map(([setting, value]) => ({ setting, value })) };
  if (outcome === 'checked') return { rows: records.map(({ name, type, value }) => ({ name, type, value })) };
  const first = await readFirstStart(config.dataDir);
  const isNew = first.setup_url?.startsWith(`https://${platformHost}/`);
  return {
    rows: [
      { what: 'dashboard', address: `https://${platformHost}` },
      { what: 'applications', address: `https://<application>.${appsDomain}` },
    ],
    secrets: isNew ? { 'Set your password at': first.setup_url as string } : {},
  };
}
