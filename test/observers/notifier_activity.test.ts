// Entries of the activity that notifiers of all types send: runs that fail, and times of schedules that were missed.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { mintId } from '../../core/ids';
import { recordEvent } from '../../models/projects/activity';
import { makeAuthority } from '../support/databases/authority';
import { startMailServer, startReceiver, until, type MailServer, type Receiver } from '../support/email/receivers';
import { observersOf, type Observers } from '../support/observers/observers';
import { makeDue, newSchedule } from '../support/runs/schedules';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let receiver: Receiver;
let mail: MailServer;
let base: string;

beforeAll(async () => {
  const authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  mail = await startMailServer();
  base = `https://127.0.0.1:${receiver.port}`;
  service = await startService({
    worker: true,
    settings: {
      ALLOW_PRIVATE_ADDRESSES: '1',
      OUTBOUND_CA_FILE: authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'receivers-')), 'ca.pem')),
      PAGERDUTY_URL: `${base}/v2/enqueue`,
      SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      SMTP_FROM: 'Platform <alerts@example.com>',
    },
  });
  observers = observersOf(service);
});

afterAll(async () => {
  await service?.close();
  await Promise.all([receiver?.close(), mail?.close()]);
});

test('failed runs and missed times of schedules reach chats and mail', async () => {
  const events = ['run.failed', 'schedule.missed'];
  await Promise.all([
    observers.notifier({ type: 'slack', config: { webhook_url: `${base}/slack/runs`, events } }),
    observers.notifier({ type: 'pagerduty', config: { routing_key: 'fedcba9876543210fedcba9876543210', events } }),
    observers.notifier({ type: 'email', config: { addresses: ['night@example.com'], events } }),
  ]);
  const made = await service.call('POST', '/v2/applications', { body: { name: 'not-deployed' } });
  const schedule = await newSchedule(service, made.body.id, { name: 'nightly <report>' });
  await makeDue(service, schedule.id);
  await until(() => receiver.at('/slack/runs').length > 0);
  expect(receiver.at('/slack/runs')[0]?.body).toMatchObject({
    text: 'schedule.missed: nightly &lt;report&gt;',
    blocks: [{}, { text: { text: expect.stringContaining(`*schedule:* nightly &lt;report&gt; (${schedule.id})`) } }],
  });
  const alerts = (): Answer['body'][] =>
    receiver.at('/v2/enqueue').filter(({ body }) => body.routing_key.startsWith('fedc'));
  await until(() => alerts().length > 0);
  expect(alerts()[0].body.payload).toMatchObject({
    summary: 'schedule.missed: nightly <report>',
    severity: 'warning',
    custom_details: { By: 'Platform' },
  });
  const run = { id: mintId('run'), project_id: service.project };
  await recordEvent(service.platform.database, 'runs', run, 'failed');
  await until(() => receiver.at('/slack/runs').some(({ body }) => body.text === `run.failed: ${run.id}`));
  await until(() => mail.mails.filter(({ to }) => to.includes('night@example.com')).length === 2);
});

test('a call that waits for an approval is sent with a link to its page, which decides nothing', async () => {
  const events = ['approval.*'];
  await Promise.all([
    observers.notifier({ type: 'slack', config: { webhook_url: `${base}/slack/approvals`, events } }),
    observers.notifier({ type: 'webhook', config: { url: `${base}/hooks/approvals`, events } }),
  ]);
  const { body: volume } = await service.call('POST', '/v2/volumes', { body: { name: 'ledger', size_gb: 1 } });
  await service.sql(`update projects set approval_required_for = 'keys' where id = $1`, [service.project]);
  const { body: refused } = await service.call('DELETE', `/v2/volumes/${volume.id}`);
  await service.sql(`update projects set approval_required_for = 'none' where id = $1`, [service.project]);
  expect(refused.code).toBe('approval_required');
  await until(() => receiver.at('/slack/approvals').length > 0 && receiver.at('/hooks/approvals').length > 0);
  expect(receiver.at('/slack/approvals')[0]?.text).toContain(refused.approval_url);
  expect(receiver.at('/hooks/approvals')[0]?.body.data).toMatchObject({
    action: 'approval.requested',
    link: refused.approval_url,
    resource: { type: 'approval', id: refused.approval_id, name: 'deleteVolume ledger' },
  });
});
