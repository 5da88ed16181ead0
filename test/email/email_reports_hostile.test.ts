// Reports come from anybody who has received a message, and answers from the servers of anybody: none may keep the
// process, which serves all tenants, busy.
import { Readable } from 'node:stream';
import { readReport, type MailReport } from '../../engines/mail/report';
import { commonTextOf } from '../../models/email/mail/shared_answers';

const LENGTH = 60_000;
const WITHIN_MS = 1_500;

function status(...lines: string[]): string {
  return [
    'Content-Type: multipart/report; report-type=delivery-status; boundary=cut',
    ...['', '--cut', 'Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; x', ''],
    ...[...lines, '--cut--', ''],
  ].join('\r\n');
}

function text(body: string, ...fields: string[]): string {
  return ['From: MAILER-DAEMON@mx.example', ...fields, 'Content-Type: text/plain', '', body].join('\r\n');
}

const long = (piece: string): string => piece.repeat(Math.floor(LENGTH / piece.length));

const cases: [string, string][] = [
  ['blanks after the type of an address', status(`Final-Recipient: rfc822;${long(' ')}<<x`, 'Action: failed')],
  ['blanks after an address', status(`Final-Recipient: rfc822; a@b.example${long(' ')}<`, 'Action: failed')],
  ['a line without an answer', text(long('a'))],
  ['a line of codes that are none', text(long('x5.1.'))],
  ['a line of dashes', text(long('-'))],
  ['blanks in quoted-printable', text(`${long(' ')}x`, 'Content-Transfer-Encoding: quoted-printable')],
  ['many failed recipients', text(long('a\n'), `X-Failed-Recipients: ${long('b,')}`)],
  ['many paragraphs', text(`Hi. This is qmail.\n\n${long('<a@b.example>:\n\n')}`)],
];

test.each(cases)('%s are read in no time', async (_, raw) => {
  const since = performance.now();
  await readReport(Readable.from([Buffer.from(raw)]));
  expect(performance.now() - since).toBeLessThan(WITHIN_MS);
});

const recipientsOf = ({ outcomes }: MailReport): unknown[] => outcomes.map(({ final }) => final);

test.each([
  ['rfc822; <Ada@B.example>', 'ada@b.example'],
  ['rfc822;ada@b.example', 'ada@b.example'],
  ['ada@b.example', 'ada@b.example'],
  ['rfc822; < ada@b.example >', 'ada@b.example'],
  ['rfc822; ada@b.example <x>', null],
])('the recipient in %s', async (field, address) => {
  const raw = status(`Final-Recipient: ${field}`, 'Action: failed', 'Status: 5.1.1');
  expect(recipientsOf(await readReport(Readable.from([Buffer.from(raw)])))).toEqual([address]);
});

test.each(['a', '[', ']', '1', '@', '[a', 'a '])('a thousand answers of %s are compared in no time', (piece) => {
  const last_response = `550 ${piece.repeat(500 / piece.length)}`.slice(0, 500);
  const since = performance.now();
  for (let read = 0; read < 1_000; read += 1) commonTextOf({ last_response, recipient: 'bcd@x.example' });
  expect(performance.now() - since).toBeLessThan(500);
});

test('what differs between answers is not compared', () => {
  const answers = [
    ['550 5.1.1 <ada@b.example>: unknown user ada [id 4x] (q2w3) by mx1.b.example', 'ada@b.example'],
    ['550 5.1.1 <bob@b.example>: unknown user bob [id 77] (z9) by mx2.b.example', 'bob@b.example'],
  ].map(([last_response = '', recipient = '']) => commonTextOf({ last_response, recipient }));
  expect(answers).toEqual(['unknown user by', 'unknown user by']);
});
