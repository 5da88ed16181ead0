/** @tier heavy @quarter 3 @covers drivers/file_store jobs/email/mail engines/mail/message models/email/mail */
// Larger messages in a file store: what was acknowledged is sent, although the machine that took it is lost. The store
// fails in all ways on the way.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import { createLog } from '../../../core/log/log';
import { openMailStore, type MailStore } from '../../../jobs/email/mail/store';
import { filesWithoutMessage } from '../../../models/email/mail/upkeep';
import { openFileStore } from '../../../drivers/file_store/open';
import { installationId } from '../../../models/applications/cluster_facts';
import { loadConfig } from '../../../core/config';
import { openMailBench, type MailBench } from '../../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../../support/email/mail_receiver';
import { openFileStoreTrial, STORES, type FileStoreTrial } from '../../support/object_storage/file_store';
import type { Fault } from '../../support/object_storage/faulty_store';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { retryCheck, waitFor } from '../../support/wait_for';

jest.setTimeout(300_000);

const LINES = 20_000;

describe.each(STORES)('%s', (kind) => {
  let store: FileStoreTrial;
  let bench: MailBench;
  let receiver: MailReceiver;
  let port: number;
  /** The receiver defers all mail. */
  let isHeld = false;
  let zone: { smtp_username: string; smtp_password: string };
  let machine: { program: Program; directory: string };

  /** A machine with nothing but the settings. */
  async function startMachine(settings: Record<string, string> = {}): Promise<void> {
    const { platform, dataDir } = bench.service;
    const directory = mkdtempSync(path.join(tmpdir(), 'platform-machine-'));
    const program = startProgram({
      ...{ DATABASE_URL: platform.databaseUrl, PLATFORM_DATA_DIR: directory, SMTP_PORTS: String(port) },
      ...{ PLATFORM_SECRET_KEY: readFileSync(path.join(dataDir, 'secret-key'), 'utf8').trim() },
      ...{ DNS_RESOLVERS: bench.dns.address, SMTP_HOST: 'smtp.example.net', MAIL_SPF: 'ip4:192.0.2.1' },
      ...{ SMTP_URL: `smtp://127.0.0.1:${receiver.port}`, LOG_LEVEL: 'info', ...store.settings, ...settings },
    });
    machine = { program, directory };
    await program.ready();
  }

  /** With all of its disk. */
  async function loseMachine(): Promise<void> {
    machine.program.signal('SIGKILL');
    await machine.program.ended;
    rmSync(machine.directory, { recursive: true, force: true });
  }

  beforeAll(async () => {
    port = await freePort();
    store = await openFileStoreTrial(kind);
    bench = await openMailBench({ settings: { MAIL_SPF: 'ip4:192.0.2.1' } });
    const domain = await bench.verified('stored.example');
    zone = await bench.relayZone('stored', domain);
    receiver = await startMailReceiver({ refuse: () => (isHeld ? [451, '4.3.0 Later'] : undefined) });
    await startMachine();
  });
  afterAll(async () => {
    await endPrograms();
    if (machine) rmSync(machine.directory, { recursive: true, force: true });
    await bench?.close();
    await receiver?.close();
    await store?.close();
  });
  afterEach(() => {
    store.faults.fail('none');
    isHeld = false;
  });

  const client = (more: object = {}) =>
    createTransport({
      ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
      auth: { user: zone.smtp_username, pass: zone.smtp_password },
      ...more,
    });

  async function send(to: string | string[], lines = LINES): Promise<void> {
    const sender = client();
    const text = `${[to].flat()[0]}\n${'0123456789\n'.repeat(lines)}`;
    await sender.sendMail({ from: 'a@stored.example', to, subject: 'Stored', text }).finally(() => sender.close());
  }

  async function arrived(to: string, withinMs = 60_000): Promise<void> {
    await waitFor(
      `mail to ${to}`,
      async () => (await retryNow()) && receiver.mails.some((one) => one.to === to),
      withinMs,
    );
    const mail = await receiver.mailTo(to);
    expect(await receiver.judge(mail, bench.dns.address)).toEqual({
      ...{ spf: 'pass', dkim: ['ed25519-sha256 pass', 'rsa-sha256 pass'], dmarc: 'pass' },
    });
  }

  const localFiles = (): string[] => readdirSync(path.join(machine.directory, 'mail'));
  /** So that what waits for its next attempt is tried now. */
  const retryNow = (): Promise<unknown> =>
    bench.service.sql(`update email_deliveries set next_at = now() where status = 'queued' and not claimed`);
  const responseTo = async (to: string): Promise<{ status: string; last_response: string; attempts: number }> =>
    (
      await bench.service.sql('select status, last_response, attempts from email_deliveries where recipient = $1', [to])
    )[0];

  test('a message is in the store when it is acknowledged, and goes when it is delivered', async () => {
    isHeld = true;
    await send(['first@receiver.example', 'second@receiver.example']);
    const [name] = await store.names('mail/');
    expect(await store.names('mail/')).toEqual([expect.stringMatching(/^mail\/eml_\w+\.eml$/)]);
    expect(localFiles().map((file) => `mail/${file}`)).toEqual([name]);
    isHeld = false;
    for (const one of ['first', 'second']) await arrived(`${one}@receiver.example`);
    await retryCheck(async () => expect(await store.names('mail/')).toEqual([]));
    expect(localFiles()).toEqual([]);
    await send('small@receiver.example', 10);
    await arrived('small@receiver.example');
  });

  test('nothing that was acknowledged is lost with the machine', async () => {
    isHeld = true;
    const acknowledged: string[] = [];
    let [serial, stopped] = [0, false];
    const sender = async (): Promise<void> => {
      while (!stopped) {
        const to = `m${(serial += 1)}@receiver.example`;
        await send(to, serial % 3 ? LINES : 10).then(
          () => acknowledged.push(to),
          () => sleep(20),
        );
      }
    };
    const senders = Array.from({ length: 4 }, sender);
    await waitFor('messages', () => acknowledged.length > 30);
    await loseMachine();
    stopped = true;
    await Promise.all(senders);
    isHeld = false;
    await startMachine();
    await waitFor('all messages', async () => {
      await retryNow();
      const there = new Set(receiver.mails.map(({ to }) => to));
      await sleep(500);
      return acknowledged.every((to) => there.has(to));
    });
    for (const to of acknowledged.slice(-3)) await arrived(to);
    // Stored and not acknowledged at the kill: swept when they are an hour old.
    const rows = await bench.service.sql<{ file: string }>('select file from email_messages');
    const known = new Set(rows.map(({ file }) => `mail/${file}`));
    const orphans = (await store.names('mail/')).filter((name) => !known.has(name));
    expect(orphans.length).toBeLessThanOrEqual(senders.length);
    for (const name of orphans) await store.remove(name);
    await retryCheck(async () => expect(await store.names('mail/')).toEqual([]));
    process.stdout.write(`${kind}: ${acknowledged.length} acknowledged, ${receiver.mails.length} arrived\n`);
  });

  // Most answers are those of the proxy, whatever is behind it.
  const faults: [string, Fault, string][] = [
    ['does not answer', 'reset', 'The file store does not respond.'],
    ['is busy', { status: 503, code: 'SlowDown' }, 'The file store refuses a request of the platform (SlowDown).'],
    [
      'is full',
      { status: 507, code: 'InsufficientCapacity' },
      'The file store refuses a request of the platform (InsufficientCapacity).',
    ],
    [
      'refuses the key',
      { status: 403, code: 'AccessDenied' },
      'The file store refuses a request of the platform (AccessDenied).',
    ],
  ];
  const each = test.each(kind === STORES.at(-1) ? faults : faults.slice(0, 1));

  test('a store that says it has a message and has not is not believed', async () => {
    store.faults.fail('lie', ['PUT']);
    await expect(send('lie@receiver.example')).rejects.toMatchObject({ responseCode: 451 });
  });

  each('a store that %s takes no larger message (451), and small ones go on', async (_, fault) => {
    store.faults.fail(fault);
    await expect(send('none@receiver.example')).rejects.toMatchObject({ responseCode: 451 });
    const small = `small-${randomBytes(4).toString('hex')}@receiver.example`;
    await send(small, 10);
    await arrived(small);
    expect(localFiles()).toEqual([]);
    store.faults.fail('none');
    const large = `large-${randomBytes(4).toString('hex')}@receiver.example`;
    await send(large);
    await arrived(large);
  });

  each('delivery waits for a store that %s', async (_, fault, reason) => {
    const to = `waits-${randomBytes(4).toString('hex')}@receiver.example`;
    isHeld = true;
    await send(to);
    await loseMachine();
    store.faults.fail(fault);
    isHeld = false;
    // Longer ago than a message waits for its recipient's server.
    await bench.service.sql('update email_deliveries set expires_at = now() where recipient = $1', [to]);
    await startMachine();
    await waitFor('the attempt', async () => {
      await retryNow();
      return (
        (await responseTo(to)).last_response?.startsWith('The file store') ||
        (await responseTo(to)).last_response?.startsWith(reason)
      );
    });
    expect(await responseTo(to)).toMatchObject({
      status: 'queued',
      last_response: `${reason} The platform waits for it and goes on by itself.`,
    });
    store.faults.fail('none');
    await arrived(to);
  });

  test('altered bytes are never sent', async () => {
    const to = 'altered@receiver.example';
    isHeld = true;
    await send(to);
    await loseMachine();
    const [name] = (await store.names('mail/')).slice(-1);
    await store.alter(name as string);
    isHeld = false;
    await startMachine();
    await waitFor('the attempt', async () => {
      await retryNow();
      return (await responseTo(to)).last_response === 'The file of the message was altered in the file store.';
    });
    expect((await responseTo(to)).status).toBe('queued');
    expect(receiver.mails.filter((mail) => mail.to === to)).toEqual([]);
    expect(localFiles()).toEqual([]);
    await bench.service.sql(`update email_deliveries set expires_at = now() where recipient = $1`, [to]);
    await waitFor('its end', async () => {
      await retryNow();
      return (await responseTo(to)).status === 'bounced';
    });
    await retryCheck(async () => expect(await store.names('mail/')).toEqual([]));
  });

  test('messages of before the setting are copied to it, and what has no message is swept', async () => {
    await loseMachine();
    await startMachine({ FILE_STORE: '' });
    isHeld = true;
    await send('before@receiver.example');
    expect(await store.names('mail/')).toEqual([]);
    const mail = mailStoreIn(path.join(machine.directory, 'mail'));
    await mail.storeAll((files) => filesWithoutMessage(bench.service.platform.database, files));
    expect(await store.names('mail/')).toHaveLength(1);
    await loseMachine();
    isHeld = false;
    await startMachine();
    await arrived('before@receiver.example');
    await retryCheck(async () => expect(await store.names('mail/')).toEqual([]));
  });

  function mailStoreIn(directory: string): MailStore {
    const { database } = bench.service.platform;
    const fileStore = openFileStore(
      loadConfig({ PLATFORM_DATA_DIR: directory, ...store.settings }),
      installationId(database),
    );
    return openMailStore({ directory, fileStore, log: createLog('error') });
  }

  test('a message for many recipients is fetched once', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'mail-once-'));
    isHeld = true;
    await send('once@receiver.example');
    const [row] = await bench.service.sql(
      `select m.file, m.size_bytes, m.body_offset, m.body_hash, null as content from email_messages m
        join email_deliveries d on d.message_id = m.id where d.recipient = 'once@receiver.example'`,
    );
    const mail = mailStoreIn(directory);
    const gets = store.faults.count('GET');
    const texts = await Promise.all(Array.from({ length: 40 }, () => mail.textOf(row)));
    expect(new Set(texts)).toEqual(new Set([path.join(directory, row.file)]));
    expect(store.faults.count('GET') - gets).toBe(1);
    expect(readdirSync(directory)).toEqual([row.file]);
    rmSync(directory, { recursive: true });
    isHeld = false;
    await arrived('once@receiver.example');
  });
});
