// One of each kind of resource, and its proof by use: a client connects, pulls, asks, or sends. What the proof answers
// must be the same on the restored machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { createConnection } from 'mysql2/promise';
import { createTransport } from 'nodemailer';
import type { Resource } from '../../demo/api';
import { ZONE } from '../../demo/dns';
import { makeRepository } from '../../demo/repository';
import type { Stage } from '../../demo/stage';
import { visit } from '../../demo/visitors';
import { writeBusyboxImage } from './busybox_image';
import { mailReceived } from './smart_host';

export interface Bench {
  stage: Stage;
  settings: Record<string, string>;
  /** Of sources and of other files that a client keeps; it outlives the installation. */
  folder: string;
}

/** Plain values: the second half reads them from a file. */
export type Made = Record<string, string>;

export interface Kind {
  name: string;
  make(bench: Bench, made: Made): Promise<void>;
  /** @returns what must be the same after the restore @throws Error while it cannot be used yet */
  prove(bench: Bench, made: Made): Promise<string>;
}

const WORK_WITHIN_MS = 600_000;

export const KINDS: readonly Kind[] = [
  { name: 'application from Git', make: makeFromGit, prove: (bench, made) => pageOf(bench, made.git_host) },
  { name: 'preview', make: makePreview, prove: (bench, made) => pageOf(bench, made.preview_host) },
  { name: 'application from an upload', make: makeFromUpload, prove: (bench, made) => pageOf(bench, made.upload_host) },
  { name: 'registry: an image is pulled', make: pushImage, prove: pullImage },
  { name: 'application from an image', make: makeFromImage, prove: (bench, made) => pageOf(bench, made.image_host) },
  { name: 'MariaDB', make: makeMariadb, prove: (_, made) => rowsOfMariadb(made) },
  { name: 'attachment of a database', make: attach, prove: variablesOf },
  { name: 'presigned address of before', make: presign, prove: (_, made) => fetched(String(made.presigned)) },
  { name: 'signed DNS zone', make: sign, prove: digSigned },
  { name: 'custom domain with its certificate', make: makeDomain, prove: certificateOf },
  { name: 'CDN zone', make: makeCdn, prove: (bench, made) => pageOf(bench, made.cdn_host) },
  { name: 'mail: accepted and queued', make: queueMail, prove: (bench) => mailReceived(bench.settings) },
  { name: 'relay zone accepts mail', make: () => Promise.resolve(), prove: acceptMail },
  { name: 'schedule, as a run', make: makeSchedule, prove: triggerSchedule },
  { name: 'observer checks again', make: makeObserver, prove: observe },
  { name: 'key of object storage', make: makeKey, prove: useKey },
];

async function deployed({ stage: { api } }: Bench, id: string, body: object = {}): Promise<string> {
  const deployment = await api.call('POST', `/v2/applications/${id}/deployments`, body);
  const place = `/v2/applications/${id}/deployments/${deployment.id}`;
  const ended = await api.until(place, ({ status }) => /active|failed|canceled/.test(status), WORK_WITHIN_MS);
  if (ended.status !== 'active') throw new Error(`the deployment of ${id} failed: ${ended.status_reason}`);
  return String((await api.call('GET', `/v2/applications/${id}`)).default_hostname);
}

/** A server of one line, whose page names its source. */
const serverOf = (text: string): string =>
  `require('http').createServer((q, r) => r.end(${JSON.stringify(text)})).listen(process.env.PORT)\n`;

function writeSource(folder: string, text: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{"name": "page", "scripts": {"start": "node server.js"}}\n');
  writeFileSync(path.join(folder, 'server.js'), serverOf(text));
  return folder;
}

async function pageOf({ stage }: Bench, host: string | undefined): Promise<string> {
  const { status, body } = await visit(stage.port, String(host));
  if (status !== 200) throw new Error(`${host} answers ${status}`);
  return body;
}

async function makeFromGit(bench: Bench, made: Made): Promise<void> {
  const folder = path.join(bench.folder, 'git');
  const repository = makeRepository(folder);
  writeSource(folder, 'from Git');
  repository.commit('', 'Serve a page');
  const source = { type: 'git', repository_url: repository.url, branch: 'main' };
  const { id } = await bench.stage.api.call('POST', '/v2/applications', { name: 'from-git', source });
  made.git = id;
  made.git_host = await deployed(bench, id);
}

async function makePreview({ stage: { api } }: Bench, made: Made): Promise<void> {
  const { id } = await api.call('POST', `/v2/applications/${made.git}/previews`, { branch: 'main' });
  const place = `/v2/applications/${made.git}/previews/${id}`;
  const found = await api.until(place, ({ status }) => /running|failed/.test(status), WORK_WITHIN_MS);
  made.preview_host = new URL(String(found.url)).hostname;
}

async function makeFromUpload(bench: Bench, made: Made): Promise<void> {
  const { api } = bench.stage;
  const folder = writeSource(path.join(bench.folder, 'upload'), 'from an upload');
  const { id } = await api.call('POST', '/v2/applications', { name: 'from-upload', source: { type: 'upload' } });
  const upload = await api.call('POST', `/v2/applications/${id}/source_uploads`, {});
  const body = execFileSync('tar', ['-cz', '-C', folder, '.']);
  const { status } = await fetch(String(upload.upload_url), { method: 'PUT', body });
  if (status >= 300) throw new Error(`the upload was answered ${status}`);
  made.upload_host = await deployed(bench, id, { source_upload_id: upload.id });
}

async function pushImage({ stage: { api }, settings, folder }: Bench, made: Made): Promise<void> {
  const name = `bench-${process.pid}`;
  await api.call('POST', '/v2/registries', { name });
  const robot = await api.call('POST', '/v2/robot_accounts', { name: 'builds', permissions: ['pull', 'push'] });
  made.image = `localhost:${settings.REGISTRY_PORT}/${name}/page:1`;
  made.login = `${String(robot.username)}:${String(robot.secret)}`;
  const layout = writeBusyboxImage(path.join(folder, 'image'), 'from an image');
  const words = ['copy', '--dest-tls-verify=false', '--dest-creds', made.login, `oci:${layout}`];
  execFileSync('skopeo', [...words, `docker://${made.image}`], { stdio: 'pipe' });
}

function pullImage({ folder }: Bench, { image, login }: Made): Promise<string> {
  const layout = path.join(folder, `pulled-${Date.now()}`);
  const words = ['copy', '--src-tls-verify=false', '--src-creds', String(login), `docker://${image}`];
  execFileSync('skopeo', [...words, `oci:${layout}:1`], { stdio: 'pipe' });
  const inspected = execFileSync('skopeo', ['inspect', '--format', '{{.Digest}}', `oci:${layout}:1`]);
  return Promise.resolve(inspected.toString().trim());
}

async function makeFromImage(bench: Bench, made: Made): Promise<void> {
  const source = { type: 'image', image: made.image };
  const { id } = await bench.stage.api.call('POST', '/v2/applications', { name: 'from-image', source });
  made.image_host = await deployed(bench, id);
}

async function makeMariadb({ stage: { api } }: Bench, made: Made): Promise<void> {
  const { id } = await api.call('POST', '/v2/databases', { name: 'ledger', engine: 'mariadb' });
  made.mariadb = id;
  await api.until(`/v2/databases/${id}`, ({ status }) => status === 'available', WORK_WITHIN_MS);
  const place = `/v2/databases/${id}/credentials`;
  const { endpoints } = await api.call<{ endpoints: { connection_string: string }[] }>('GET', place);
  made.mariadb_url = String(endpoints[0]?.connection_string);
  await inMariadb(made, (client) => client.query('create table ledger as select seq from seq_1_to_50000'));
}

async function inMariadb<T>(made: Made, work: (client: Awaited<ReturnType<typeof createConnection>>) => Promise<T>) {
  const { hostname, port, username, password, pathname } = new URL(String(made.mariadb_url));
  const client = await createConnection({
    ...{ host: hostname, port: Number(port), user: username, password: decodeURIComponent(password) },
    ...{ database: pathname.slice(1), ssl: { rejectUnauthorized: false } },
  });
  return work(client).finally(() => client.end());
}

/** With the address and the password of before. */
async function rowsOfMariadb(made: Made): Promise<string> {
  const [rows] = await inMariadb(made, (client) => client.query('select count(*) as n, sum(seq) as s from ledger'));
  return JSON.stringify(rows);
}

async function attach(bench: Bench, made: Made): Promise<void> {
  const body = { application_id: made.git, env_prefix: 'LEDGER' };
  const { api } = bench.stage;
  await api.call('POST', `/v2/databases/${made.mariadb}/attachments`, body);
  await deployed(bench, String(made.git));
}

async function variablesOf({ stage: { api } }: Bench, made: Made): Promise<string> {
  const command = 'printenv | grep ^LEDGER | sort | sha256sum';
  const run = await api.call('POST', `/v2/applications/${made.git}/runs`, { command });
  return outputOf(api, `/v2/applications/${made.git}`, run.id);
}

async function outputOf(api: Stage['api'], application: string, id: string): Promise<string> {
  const place = `${application}/runs/${id}`;
  const ended = await api.until(place, ({ status }) => /succeeded|failed|canceled/.test(status), WORK_WITHIN_MS);
  if (ended.status !== 'succeeded') throw new Error(`the run ${ended.status}: ${ended.status_reason}`);
  for (let round = 0; round < 50; round += 1, await sleep(200)) {
    const { data } = await api.call<{ data: { message: string }[] }>('GET', `${place}/logs?limit=100`);
    if (data.length) return data.map(({ message }) => message).join('\n');
  }
  return 'nothing';
}

async function presign({ stage: { api } }: Bench, made: Made): Promise<void> {
  const { id } = await api.call('POST', '/v2/buckets', { name: `presigned-${process.pid}` });
  const addressTo = async (method: string): Promise<string> =>
    (await api.call<{ url: string }>('POST', `/v2/buckets/${id}/presign`, { key: 'letter', method })).url;
  await fetch(await addressTo('PUT'), { method: 'PUT', body: 'a letter' });
  made.presigned = await addressTo('GET');
}

async function fetched(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`it is answered ${response.status}`);
  return response.text();
}

async function sign({ stage: { api } }: Bench, made: Made): Promise<void> {
  const { data } = await api.call<{ data: Resource[] }>('GET', '/v2/dns_zones');
  made.zone = String(data[0]?.id);
  await api.call('POST', `/v2/dns_zones/${made.zone}/dnssec`);
}

/** The key is that of before: a resolver has its digest from the registrar. */
function digSigned({ settings }: Bench): Promise<string> {
  const ask = (type: string, name: string): string =>
    execFileSync('dig', ['@127.0.0.1', '-p', String(settings.DNS_PORT), '+dnssec', '+short', name, type]).toString();
  const [keys, answer] = [ask('DNSKEY', ZONE), ask('A', `www.${ZONE}`)];
  if (!/^A 13 /m.test(answer)) throw new Error('the answer has no signature');
  const own = keys.split('\n').filter((line) => /^25[67] /.test(line));
  return Promise.resolve([...own.sort(), answer.split('\n')[0]].join(' '));
}

async function makeDomain({ stage: { api } }: Bench, made: Made): Promise<void> {
  made.domain = `shop.${ZONE}`;
  const place = `/v2/applications/${made.git}/domains`;
  const { id } = await api.call('POST', place, { hostname: made.domain });
  await api.until<{ data: Resource[] }>(
    place,
    ({ data }) => data.some((one) => one.id === id && (one.certificate as Resource | null)?.status === 'issued'),
    WORK_WITHIN_MS,
  );
}

/** The same certificate: an authority's limits would not bear all of them anew. */
function certificateOf({ settings }: Bench, { domain }: Made): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: Number(settings.INGRESS_TLS_PORT), servername: domain };
    const socket = connectTls({ ...options, rejectUnauthorized: false }, () => {
      const { subjectaltname = '', fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      if (subjectaltname.includes(String(domain))) resolve(fingerprint256);
      else reject(new Error(`the certificate is of ${subjectaltname}`));
    });
    socket.on('error', reject);
  });
}

async function makeCdn({ stage: { api } }: Bench, made: Made): Promise<void> {
  const origin = { type: 'application', application_id: made.git };
  const zone = await api.call('POST', '/v2/cdn_zones', { name: 'pages', origin });
  await api.until(`/v2/cdn_zones/${zone.id}`, ({ status }) => status === 'active', WORK_WITHIN_MS);
  made.cdn_host = String(zone.hostname);
}

async function queueMail(bench: Bench, made: Made): Promise<void> {
  const { api } = bench.stage;
  const { id } = await api.call('POST', '/v2/email_domains', { name: ZONE });
  const place = `/v2/email_domains/${id}`;
  for (let round = 0; round < 30; round += 1, await sleep(1_000)) {
    const { status } = await api.call('POST', `${place}/verify`);
    if (status === 'verified') break;
  }
  const zone = await api.call('POST', '/v2/email_relay_zones', { name: 'letters', email_domain_ids: [id] });
  Object.assign(made, { smtp_user: String(zone.smtp_username), smtp_password: String(zone.smtp_password) });
  await sendMail(bench, made, 'Queued before the backup');
}

async function sendMail({ settings }: Bench, made: Made, subject: string): Promise<string> {
  const transport = createTransport({
    ...{ host: '127.0.0.1', port: Number(settings.SMTP_PORTS), secure: false, tls: { rejectUnauthorized: false } },
    auth: { user: made.smtp_user, pass: made.smtp_password },
  });
  const { response } = await transport.sendMail({
    ...{ from: `shop@${ZONE}`, to: 'reader@example.com', subject, text: 'A letter.' },
  });
  return response.slice(0, 3);
}

function acceptMail(bench: Bench, made: Made): Promise<string> {
  return sendMail(bench, made, 'Another letter');
}

async function makeSchedule({ stage: { api } }: Bench, made: Made): Promise<void> {
  const body = { name: 'nightly', cron: '30 2 1 1 *', command: 'echo done' };
  made.schedule = (await api.call('POST', `/v2/applications/${made.git}/schedules`, body)).id;
}

async function triggerSchedule({ stage: { api } }: Bench, made: Made): Promise<string> {
  const application = `/v2/applications/${made.git}`;
  const run = await api.call('POST', `${application}/schedules/${made.schedule}/trigger`);
  return outputOf(api, application, run.id);
}

async function makeObserver({ stage: { api } }: Bench, made: Made): Promise<void> {
  const config = { url: 'https://example.com/hook' };
  const notifier = await api.call('POST', '/v2/notifiers', { name: 'Hook', type: 'webhook', config });
  const uptime = { target: `http://www.${ZONE}/` };
  const body = { name: 'Shop', type: 'uptime', uptime, notifier_ids: [notifier.id] };
  made.observer = (await api.call('POST', '/v2/observers', body)).id;
}

/** A check of after now. */
async function observe({ stage: { api } }: Bench, { observer }: Made): Promise<string> {
  const began = new Date().toISOString();
  type Results = { data: { checked_at: string }[] };
  const place = `/v2/observers/${observer}/results?limit=20`;
  await api.until<Results>(place, ({ data }) => data.some((one) => one.checked_at > began), WORK_WITHIN_MS);
  const { notifier_ids } = await api.call<{ notifier_ids: string[] }>('GET', `/v2/observers/${observer}`);
  return notifier_ids.join();
}

async function makeKey({ stage: { api } }: Bench, made: Made): Promise<void> {
  const grants = [{ bucket_id: null, permission: 'full' }];
  const key = await api.call('POST', '/v2/bucket_access_keys', { name: 'restic', grants });
  Object.assign(made, { access_key: String(key.access_key_id), secret_key: String(key.secret_access_key) });
}

/** restic, a client of S3, lists the bucket with it. */
function useKey({ settings }: Bench, made: Made): Promise<string> {
  const bucket = new URL(String(made.presigned)).pathname.split('/')[1];
  const env = {
    ...{ PATH: process.env.PATH, HOME: '/nonexistent', AWS_ACCESS_KEY_ID: made.access_key },
    ...{ AWS_SECRET_ACCESS_KEY: made.secret_key, RESTIC_PASSWORD: 'x' },
  };
  const address = `s3:http://127.0.0.1:${settings.S3_PORT}/${bucket}/nothing`;
  try {
    execFileSync('restic', ['-r', address, 'cat', 'config', '--no-cache'], { env, stdio: 'pipe' });
  } catch (error) {
    const said = String((error as { stderr?: Buffer }).stderr);
    // The server knows the key, and that there is no such object.
    if (/does not exist|Is there a repository/.test(said)) return Promise.resolve('the key is known');
    throw new Error(said.slice(0, 300), { cause: error });
  }
  return Promise.resolve('a repository');
}
