// Rows of every kind in three projects of two accounts.
import type { Operation } from '../../../contract/operations';
import { appendDatabaseLines, appendLogLines } from '../../../models/applications/log_line';
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { SAMPLE_SETTINGS } from '../builds/sample_repository';
import { startService, type TestService } from '../service';
import { kindNames, kindOfParam, openWorld, type World } from '../world';

export let service: TestService;

export let dns: DnsServer;

export let mine: World;

export const others: World[] = [];

/** Lines of logs are rows without an id. */
export async function writeLines(world: World): Promise<void> {
  const line = { project_id: world.project, application_id: await world.id('application'), source: 'app' as const };
  const built = { ...line, deployment_id: await world.id('deployment'), step: 'build' as const };
  const ran = { ...line, run_id: await world.id('run') };
  const served = {
    project_id: world.project,
    database_id: await world.id('database'),
    replica_id: null,
    source: 'server' as const,
  };
  await appendLogLines(
    service.platform.database,
    [line, line, built, built, ran, ran].map((one) => ({ ...one, message: `printed in ${world.project}` })),
  );
  await appendDatabaseLines(
    service.platform.database,
    [served, served].map((one) => ({ ...one, message: `printed in ${world.project}` })),
  );
}

export const asCase = (operation: Operation): [string, Operation] => [operation.id, operation];

export const strangers = (): [string, World][] =>
  others.map((world, index) => [index ? 'another project of the same owner' : 'another account', world]);

/** Nothing of the other project is in the answer, except what the request itself named. */
export function expectSilence(answer: { text: string }, other: World, named: readonly string[]): void {
  const text = named.reduce((rest, word) => rest.replaceAll(word, ''), answer.text);
  for (const mark of other.marks)
    if (text.includes(mark)) throw new Error(`the answer tells of ${mark}: ${answer.text}`);
}

/** Of no project, of the host, or of the caller in any project. Keys are of persons, and of projects that they own. */
const OUTSIDE = [
  ...['project', 'deleted_project', 'error', 'environment_variable', 'git_repository', 'api_key'],
  'database_extension',
];

/** Parameters of the path that name rows inside a project. */
export function rowParams(operation: Operation): string[] {
  return operation.params.map(({ name }) => kindOfParam(operation, name)).filter((kind) => !OUTSIDE.includes(kind));
}

/** To be called where tests are declared. */
export function setUpTenancy(): void {
  /** Rows of every kind in every project, twice where a page is to be turned. */
  beforeAll(async () => {
    dns = await startDnsServer();
    service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
    mine = openWorld(service);
    others.splice(
      0,
      others.length,
      openWorld(service, await service.newProject({ stranger: true })),
      openWorld(service, await service.newProject()),
    );
    for (const world of [mine, ...others])
      for (const kind of kindNames) if (kind !== 'project') await Promise.all([world.id(kind), world.other(kind)]);
    for (const world of [mine, ...others]) await writeLines(world);
    for (const world of [mine, ...others]) await writeObjects(world);
    for (const world of [mine, ...others]) await writeUsage(world);
  });
  afterAll(async () => {
    await service.close();
    await dns.close();
  });
}

/** Objects come over the S3 endpoint, which no worker serves here. */
async function writeObjects(world: World): Promise<void> {
  for (const key of ['first', 'second']) {
    const object = { key, size: 1, etag: 'e', file_id: `${world.project} ${key}` };
    await world.service.sql('select put_bucket_object($1, $2, null)', [
      await world.id('bucket'),
      JSON.stringify(object),
    ]);
  }
}

/** Reported by the gateway. */
async function writeUsage({ service: { sql }, project }: World): Promise<void> {
  for (const model of ['first', 'second'])
    await sql(
      `insert into ai_usage (project_id, date, model_id, requests, input_tokens, output_tokens, errors)
        values ($1, current_date, $2, 1, 1, 1, 0)`,
      [project, model],
    );
}
