// A project as customers have one: something of every kind that holds data, each as old as a month, and what visitors
// and clients get of it.
import { setTimeout as sleep } from 'node:timers/promises';
import { Resolver } from 'node:dns/promises';
import { createHash } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { withConfig } from '../config';
import { connect, openDatabaseWorkshop } from '../databases/database_hall';
import { startDeployService, visitHost, type DeployService, type TestApplication } from '../deployments/deploy';
import { freePort } from '../processes/free_port';
import { startRegistryClient } from '../registries/registry_client';
import { waitFor } from '../wait_for';
import { openWorld } from '../world';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const SERVER = `const fs = require('fs');
require('http').createServer((asked, answer) => {
  if (asked.url === '/write') fs.writeFileSync('/data/note', 'a file of the customer');
  const file = fs.existsSync('/data/note') ? fs.readFileSync('/data/note', 'utf8') : 'no file';
  answer.end([process.env.GREETING, file, Boolean(process.env.DATABASE_URL)].join(', '));
}).listen(process.env.PORT);`;
const FILES = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': SERVER };

export interface AttackedProject {
  /** Address of a repository whose application defaces the page. */
  evil: string;
  service: DeployService;
  application: { id: string; host: string };
  database: { id: string };
  zone: { id: string };
  bucket: { id: string; name: string };
  /** Ids of other kinds. */
  others: Record<'email_domain' | 'observer' | 'notifier' | 'cdn_zone', string>;
  /** What is the same again when nothing is lost. */
  state(): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

type Make = (path: string, body: object) => Promise<any>;

export async function startAttackedProject(settings: Record<string, string> = {}): Promise<AttackedProject> {
  const place = openDatabaseWorkshop();
  const [dns, s3, registry, smtp] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const service = await startDeployService({
    ...place.settings,
    ...{ DNS_PORT: String(dns), S3_PORT: String(s3), REGISTRY_PORT: String(registry), SMTP_PORTS: String(smtp) },
    ...{ RETENTION_OF_DELETED_DAYS: '7', DESTROYING_CALLS_PER_MINUTE: '10000' },
    ...withConfig({ dnsRoots: ['127.0.0.1:1'], databaseDir: place.databaseDir }),
    ...settings,
  });
  const world = openWorld(service);
  const make: Make = async (path, body) => {
    const made = await service.call('POST', path, { body });
    if (made.status >= 300) throw new Error(`${path} ${made.text}`);
    return made.body;
  };
  const app = await newApplication(service, make);
  const database = await newDatabase(service, make, app.id);
  await app.deploy();
  await app.visit('/write');
  const storage = await newBucket(make, app.host.split('.')[0] as string, s3);
  const zone = await newZone(service, make);
  const images = await newRegistry(service, make, registry);
  const cdn = await make('/v2/cdn_zones', { name: 'assets', origin: { type: 'application', application_id: app.id } });
  const others = {
    ...{ email_domain: await world.fresh('email_domain'), observer: await world.fresh('observer') },
    ...{ notifier: await world.fresh('notifier'), cdn_zone: cdn.id as string },
  };
  for (const table of AGED) await service.sql(`update ${table} set created_at = created_at - interval '30 days'`);
  await service.sql(`update members set owner_since = now() - interval '30 days'`);
  const { bucket, key, client, objects } = storage;
  const [appPath, databasePath] = [`/v2/applications/${app.id}`, `/v2/databases/${database.id}`];
  const paths = [
    ...[appPath, databasePath, `/v2/volumes/${app.volume}`, `/v2/buckets/${bucket.id}`, `/v2/dns_zones/${zone.id}`],
    ...[`/v2/registries/${images.id}`, `/v2/cdn_zones/${cdn.id}`, `/v2/email_domains/${others.email_domain}`],
    ...[`/v2/observers/${others.observer}`, `/v2/notifiers/${others.notifier}`, `/v2/bucket_access_keys/${key.id}`],
    ...[`/v2/robot_accounts/${images.robot}`, `/v2/projects/${service.project}`, `${appPath}/settings`],
    `${appPath}/auto_deploy`,
  ];
  const lists = [
    ...['env', 'processes', 'domains', 'schedules'].map((child) => `${appPath}/${child}`),
    ...['endpoints', 'users', 'attachments'].map((child) => `${databasePath}/${child}`),
    `/v2/dns_zones/${zone.id}/records`,
  ];
  return {
    ...{ evil: app.evil, service, application: app, database, zone, bucket, others },
    state: async () => ({
      ...(await shownOf(service, paths, lists)),
      page: (await visitHost(service.platform.config.ingressPort, app.host)).body,
      ...{
        ...(await database.content()),
        objects: await objects(),
        dns: await answersOf(dns),
        image: await images.digest(),
      },
    }),
    async close() {
      client.destroy();
      await clear(service, [`/v2/cdn_zones/${cdn.id}`, appPath, databasePath]);
      await service.close();
      place.clear();
    },
  };
}

/** Deployed with a variable, a schedule, a domain and a volume. */
async function newApplication(
  service: DeployService,
  make: Make,
): Promise<TestApplication & { volume: string; evil: string }> {
  const app = await service.application(FILES);
  await service.call('PUT', `/v2/applications/${app.id}/env/GREETING`, { body: { value: 'hello' } });
  await app.post('/schedules', { name: 'nightly', cron: '0 3 * * *', command: 'true' });
  await app.post('/domains', { hostname: 'shop.example.com' });
  const { id: volume } = await make('/v2/volumes', { name: 'files', size_gb: 1 });
  await service.settle(`/v2/volumes/${volume}`);
  await service.call('PATCH', `/v2/volumes/${volume}`, { body: { application_id: app.id, mount_path: '/data' } });
  const server = SERVER.replace('process.env.GREETING', "'defaced'");
  service.git.makeRepository('evil', { ...FILES, 'server.js': server });
  return { ...app, volume, evil: service.git.url('evil') };
}

/** With a thousand rows, attached to the application. */
async function newDatabase(
  service: DeployService,
  make: Make,
  application_id: string,
): Promise<{ id: string; content(): Promise<{ address: string; rows: string }> }> {
  const { id } = await make('/v2/databases', { name: 'main', engine: 'postgresql' });
  const path = `/v2/databases/${id}`;
  const isThere = async (): Promise<boolean> => (await service.call('GET', path)).body.status === 'available';
  await waitFor('the database', isThere, 90_000);
  const addressOf = async (): Promise<string> =>
    (await service.call('GET', `${path}/credentials`)).body.endpoints[0].connection_string;
  await connect(await addressOf(), async (client) => {
    await client.query('create table notes (id int primary key, body text)');
    await client.query('insert into notes select n, md5(n::text) from generate_series(1, 1000) n');
  });
  await make(`${path}/attachments`, { application_id });
  const content = async (): Promise<{ address: string; rows: string }> => {
    const address = await addressOf().catch(() => 'none');
    let text = '';
    await connect(address, async (one) => {
      text = JSON.stringify((await one.query('select * from notes order by id')).rows);
    }).catch((error: Error) => void (text = error.message));
    return { address, rows: createHash('sha256').update(text).digest('hex') };
  };
  return { id, content };
}

/** With two objects, and the key that reads them. */
async function newBucket(make: Make, suffix: string, port: number) {
  const bucket = await make('/v2/buckets', { name: `photos-${suffix}`, versioning: true });
  const grants = [{ bucket_id: bucket.id, permission: 'full' }];
  const key = await make('/v2/bucket_access_keys', { name: 'shop', grants });
  const client = new S3Client({
    ...{ endpoint: `http://127.0.0.1:${port}`, region: 'eu-central-1', forcePathStyle: true },
    credentials: { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key },
  });
  const named = (Key: string): { Bucket: string; Key: string } => ({ Bucket: bucket.name, Key });
  for (const name of ['one', 'two'])
    await client.send(new PutObjectCommand({ ...named(name), Body: `picture ${name}` }));
  const objectOf = (name: string): Promise<string> =>
    client.send(new GetObjectCommand(named(name))).then(
      async ({ Body }) => (await Body?.transformToString()) ?? '',
      (error: Error) => error.name,
    );
  const objects = async (): Promise<string[]> => [await objectOf('one'), await objectOf('two')];
  return { bucket, key, client, objects };
}

/** Served, though nothing delegates it here. */
async function newZone(service: DeployService, make: Make): Promise<{ id: string }> {
  const zone = await make('/v2/dns_zones', { name: ZONE });
  const records = [
    { type: 'A', name: 'www', value: '192.0.2.7', ttl: 120, comment: 'front' },
    { type: 'MX', value: 'mail.example.net', priority: 10 },
    { type: 'TXT', name: 'proof', value: 'a=1' },
  ];
  for (const record of records) await make(`/v2/dns_zones/${zone.id}/records`, record);
  await service.sql(`update dns_zones set status = 'active', generation = generation + 1, next_at = now()`);
  return zone;
}

async function answersOf(port: number): Promise<unknown[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  const ask = (name: string, type: string): Promise<unknown> =>
    resolver.resolve(name, type).catch(({ code }: NodeJS.ErrnoException) => code);
  return [await ask(`www.${ZONE}`, 'A'), await ask(ZONE, 'MX'), await ask(`proof.${ZONE}`, 'TXT')];
}

/** With an image, and the robot account that pulls it. */
async function newRegistry(service: DeployService, make: Make, port: number) {
  const { id, name } = await make('/v2/registries', { name: 'images' });
  await service.settle(`/v2/registries/${id}`);
  const robot = await make('/v2/robot_accounts', { name: 'pusher', permissions: ['pull', 'push'], registry_ids: [id] });
  const docker = startRegistryClient({ port, username: robot.username, password: robot.secret });
  await docker.pushImage(`${name}/shop`, '1', [Buffer.alloc(50_000, 7)]);
  const digest = async (): Promise<string | null> =>
    (await docker.pull(`${name}/shop`, '1')).headers.get('docker-content-digest');
  return { id: id as string, robot: robot.id as string, digest };
}

async function shownOf(
  service: DeployService,
  paths: readonly string[],
  lists: readonly string[],
): Promise<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const path of paths) shown[path] = lasting(await read(service, path), path);
  for (const path of lists)
    shown[path] = ((await read(service, path)).data ?? []).map((row: any) => lasting(row)).sort(byText);
  return shown;
}

const WAIT_MS = 1_000;
/** After an attack the limit of requests may be used up. */
async function read(service: DeployService, path: string): Promise<any> {
  for (let turn = 0; ; turn += 1) {
    const { status, body } = await service.call('GET', path);
    if (![429, 503].includes(status) || turn === 60) return body;
    await sleep(WAIT_MS);
  }
}

/** For good, with all that lies in the bin. */
async function clear(service: DeployService, paths: readonly string[]): Promise<void> {
  for (const path of paths) await service.call('DELETE', path);
  await service.sql('update deleted_resources set purge_from = now()');
  const { data } = (await service.call('GET', `/v2/projects/${service.project}/bin?limit=100`)).body;
  for (const { id } of data) await service.call('DELETE', `/v2/bin/${id}`);
}

const ZONE = 'customer.example';
const AGED = [
  ...['applications', 'databases', 'volumes', 'buckets', 'dns_zones', 'cdn_zones', 'email_domains', 'observers'],
  ...['notifiers', 'registries', 'bucket_access_keys', 'robot_accounts', 'database_backups'],
];

/** What nobody looks at, or what changes by itself. */
const PASSING = new RegExp(
  `^(${[
    'updated_at',
    '.*_checked_at',
    'next_run_at',
    'checked_at',
    'last_.*',
    'observed_.*',
    'status_reason',
    'point_in_time_window',
    'size_bytes',
    'storage_used.*',
    'next_check_at',
    'uptime.*',
    'started_at',
    'serial',
    'record_count',
    'version',
    'created_at',
    'days',
    'metrics',
    'certificate',
    'delegation',
    'active_deployment.*',
    'dns_records',
    'used_bytes',
    'open_incident_id',
    'current_deployment_id',
  ].join('|')})$`,
);

function lasting(row: any, path = ''): unknown {
  if (Array.isArray(row)) return row.map((one) => lasting(one));
  if (row === null || typeof row !== 'object') return row;
  return Object.fromEntries(
    Object.entries(row)
      .filter(([name]) => !PASSING.test(name) && !(name === 'status' && path.includes('/observers/')))
      .filter(([name]) => !(name === 'id' && 'hostname' in row && 'verified_at' in row))
      .map(([name, value]) => [name, lasting(value)]),
  );
}

const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
