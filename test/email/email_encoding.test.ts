// What not every server takes is encoded before it is signed: bytes beyond ASCII, and lines of more than 998 bytes.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser, type ParsedMail } from 'mailparser';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver, type ReceivedMail } from '../support/email/mail_receiver';
import { smtpDialogue } from '../support/email/smtp_dialogue';
import { retryCheck } from '../support/wait_for';

const utf8 = (text: string): string => Buffer.from(text).toString('latin1');
const LONG = 'One word after another, '.repeat(400);
const SIGNATURES = ['ed25519-sha256 pass', 'rsa-sha256 pass'];
const ATTACHED = 'Content-Disposition: attachment';
const FROM = 'From: a@shop.example';
const isFit = (text: string): boolean =>
  /^[\0-\x7f]*$/.test(text) && text.split('\r\n').every((line) => line.length <= 998);

describe.each([
  ['8BITMIME and SMTPUTF8', false],
  ['neither 8BITMIME nor SMTPUTF8', true],
])('to a server with %s', (_name, isOld) => {
  let bench: MailBench;
  let receiver: MailReceiver;
  let port: number;
  let login: string;
  let serial = 0;

  beforeAll(async () => {
    receiver = await startMailReceiver({ hide8BITMIME: isOld, hideSMTPUTF8: isOld });
    port = await freePort();
    const settings = { SMTP_PORTS: String(port), SMTP_URL: `smtp://127.0.0.1:${receiver.port}` };
    bench = await openMailBench({ worker: true, settings });
    const zone = await bench.relayZone('zone', await bench.verified('shop.example'));
    login = Buffer.from(`\0${zone.smtp_username}\0${zone.smtp_password}`).toString('base64');
  });

  afterAll(async () => {
    await bench.close();
    await receiver.close();
  });

  /** @returns its recipient */
  async function handIn(text: string, answer = /^250/, parameters = ''): Promise<string> {
    const to = `r${(serial += 1)}@receiver.example`;
    await smtpDialogue({ port, tls: true }, [
      ['EHLO client.example', /^250/],
      [`AUTH PLAIN ${login}`, /^235/],
      [`MAIL FROM:<a@shop.example>${parameters}`, /^250/],
      [`RCPT TO:<${to}>`, /^250/],
      ['DATA', /^354/],
      [`${text.replace(/^\./gm, '..')}\r\n.`, answer],
    ]);
    return to;
  }

  async function arrived(text: string, parameters = ''): Promise<ReceivedMail> {
    const mail = await receiver.mailTo(await handIn(text, /^250/, parameters));
    expect((await receiver.judge(mail, bench.dns.address)).dkim).toEqual(SIGNATURES);
    return mail;
  }

  /** Arrives fit for every server, and means what it meant. */
  async function arrivesEncoded(text: string): Promise<ParsedMail> {
    const mail = await arrived(text);
    expect(isFit(mail.raw)).toBe(true);
    expect(mail.bodyType).toBe('7bit');
    const [sent, read] = [await simpleParser(Buffer.from(text, 'latin1')), await simpleParser(mail.raw)];
    const contentOf = ({ text: plain, html, attachments, subject, from, to }: ParsedMail): unknown => [
      ...[plain?.trimEnd(), html, subject, from?.value, to && 'value' in to ? to.value : null],
      attachments.map(({ filename, checksum, contentType }) => [filename, checksum, contentType]),
    ];
    expect(contentOf(read)).toEqual(contentOf(sent));
    return read;
  }

  async function bouncesWith(text: string, response: string, parameters = ''): Promise<void> {
    const to = await handIn(text, /^250/, parameters);
    await retryCheck(async () => {
      const [row] = await bench.service.sql(
        `select status, last_response from email_deliveries where recipient = '${to}'`,
      );
      expect(row).toMatchObject({ status: 'bounced', last_response: expect.stringContaining(response) });
    });
  }

  const plain = (body: string, header = 'Content-Transfer-Encoding: 8bit'): string =>
    `${FROM}\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n${header}\r\n\r\n${body}`;
  const multipart = (type: string, parts: string[]): string => {
    const lines = ['', 'Text before.', ...parts.flatMap((part) => ['--a b', part]), '--a b--', ''];
    return [`Content-Type: multipart/${type}; boundary="a b"`, ...lines].join('\r\n');
  };

  test.each([
    ['text of 8 bits', plain(utf8('Grüße aus Köln.\r\n.\r\n\r\n = x  \r\n\r\n\r\n'))],
    ['text of 8 bits in another script', plain(utf8('Съешь ещё этих мягких французских булок.\r\n'.repeat(20)))],
    ['text of 8 bits that says 7bit', plain(utf8('Grüße\r\n'), 'Content-Transfer-Encoding: 7bit')],
    ['text of 8 bits with an encoding that nobody knows', plain(utf8('Grüße\r\n'), 'Content-Transfer-Encoding: utf8')],
    ['a long line', plain(`${LONG}\r\nshort\r\n`, 'X: y')],
    ['a long line at the end, with no line end', plain(LONG.trimEnd(), 'X: y')],
    [
      'a long line of quoted-printable',
      plain(`=C3=BC ${LONG}=\r\n=E2=82=AC \r\n`, 'Content-Transfer-Encoding: quoted-printable'),
    ],
    [
      'quoted-printable with bytes of 8 bits',
      plain(utf8('=C3=BC ü=\r\n ü =3D\r\n'), 'Content-Transfer-Encoding: quoted-printable'),
    ],
    [
      'a long line of base64',
      plain(Buffer.from(utf8(LONG), 'latin1').toString('base64'), 'Content-Transfer-Encoding: base64'),
    ],
    ['a file that is larger than a row', plain(utf8(`${'Grüße aus Köln. '.repeat(40)}\r\n`.repeat(200)))],
    [
      'a multipart of many kinds',
      `${FROM}\r\nContent-Transfer-Encoding: 8bit\r\n${multipart('mixed', [
        `Content-Type: text/plain; charset=iso-8859-1\r\n\r\nGr\xfc\xdfe\r\n`,
        `Content-Type: text/html; charset=utf-8\r\n\r\n<p>${utf8('ü')} ${LONG}</p>`,
        `Content-Type: image/png; name="x.png"\r\nContent-Transfer-Encoding: base64\r\n\r\n${'QUJD'.repeat(2000)}`,
        `Content-Type: application/octet-stream\r\n${ATTACHED}; filename="b"\r\n\r\n\xff\xfe\x01\x80\r\n\xff`,
        `Content-Type: text/plain; charset=us-ascii\r\n${ATTACHED}; filename="c"\r\n\r\nas it is `,
      ])}`,
    ],
    [
      'names in the header',
      plain(
        'x',
        utf8(
          'To: "Jürgen, K." <k@receiver.example>, Zoë <z@receiver.example>\r\n' +
            'Subject: Grüße an alle, die da sind, und auch an die, die noch kommen: ööö',
        ),
      ),
    ],
    [
      'a name of a file',
      `${FROM}\r\n${multipart('mixed', [
        `Content-Type: text/plain\r\n${ATTACHED}; filename="${utf8('Übersicht 1')}.txt"\r\n\r\nx`,
      ])}`,
    ],
    ['a domain beyond ASCII', plain('x', utf8('To: k@bücher.example, Zoë <z@bücher.example>'))],
  ])('%s arrives encoded, and signed', async (_case, text) => void (await arrivesEncoded(text)));

  test('text that says nothing about itself is described', async () => {
    const known = await arrived(`${FROM}\r\n\r\n${utf8('Grüße')}`);
    expect((await simpleParser(known.raw)).text?.trim()).toBe('Grüße');
    expect(known.raw).toMatch(/^MIME-Version: 1\.0\r\nContent-Type: text\/plain; charset=utf-8\r$/m);
    const unknown = await arrived(`${FROM}\r\n\r\nGr\xfc\xdfe, und noch etwas mehr Text`);
    expect(unknown.raw).toContain('charset=unknown-8bit');
    expect(unknown.raw).toContain('Gr=FC=DFe');
  });

  test('a message within a message is encoded part by part', async () => {
    const eightBit = 'Content-Transfer-Encoding: 8bit\r\n\r\n';
    const inner =
      `From: x@elsewhere.example\r\nSubject: ${utf8('ü')}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `${eightBit}${utf8('Grüße')}`;
    const mail = await arrived(
      `${FROM}\r\n${multipart('mixed', ['\r\nSee below.', `Content-Type: message/rfc822\r\n${eightBit}${inner}`])}`,
    );
    expect(isFit(mail.raw)).toBe(true);
    const [attached] = (await simpleParser(mail.raw)).attachments;
    const read = await simpleParser(attached?.content ?? '');
    expect([attached?.contentType, read.subject, read.text?.trim()]).toEqual(['message/rfc822', 'ü', 'Grüße']);
    expect(mail.raw).toMatch(/^Content-Type: message\/rfc822\r\nContent-Transfer-Encoding: 7bit\r$/m);
  });

  test('what needs no encoding arrives byte by byte', async () => {
    const body = `Text, with a tab\t and blanks  \r\n\r\n${'x'.repeat(998)}\r\n--\r\nend`;
    const header = 'Content-Transfer-Encoding: 8bit\r\nReferences: <1@x>\r\n <2@x>';
    const mail = await arrived(plain(body, header));
    expect(mail.raw.slice(mail.raw.indexOf('\r\n\r\n') + 4)).toBe(`${body}\r\n`);
    expect(mail.raw).toContain(`${header}\r\n`);
    expect(mail.bodyType).toBe('7bit');
  });

  const signed = (content: string): string =>
    `${FROM}\r\nMIME-Version: 1.0\r\n${multipart('signed; protocol="application/pgp-signature"', [
      `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${content}`,
      'Content-Type: application/pgp-signature\r\n\r\n-----BEGIN PGP SIGNATURE-----\r\nx',
    ])}`;

  test('what somebody has signed stays as it is, or does not arrive', async () => {
    const text = signed(utf8('Grüße'));
    if (isOld) await bouncesWith(text, '5.6.3');
    else {
      const mail = await arrived(text);
      expect(mail.raw.slice(mail.raw.indexOf('\r\n\r\n') + 4)).toBe(`${text.slice(text.indexOf('\r\n\r\n') + 4)}\r\n`);
      expect(mail.bodyType).toBe('8bitmime');
    }
    await handIn(signed(LONG), /^550 5\.6\.0 .*signed part/);
    expect(isFit((await arrived(signed('Greetings'))).raw)).toBe(true);
  });

  test('a mailbox beyond ASCII in the header is announced, or does not arrive', async () => {
    const text = plain('x', utf8('To: Jürgen <jürgen@bücher.example>'));
    await handIn(text, /^550 5\.6\.7/);
    if (isOld) return bouncesWith(text, '5.6.7', ' SMTPUTF8');
    const mail = await arrived(text, ' SMTPUTF8');
    expect(mail).toMatchObject({ smtpUtf8: true, bodyType: '8bitmime' });
    expect(mail.raw).toContain(utf8('<jürgen@xn--bcher-kva.example>'));
    // What comes next in the same connection announces nothing.
    expect(await arrived(plain('x', 'X: y'))).toMatchObject({ smtpUtf8: false, bodyType: '7bit' });
  });

  test('long fields are folded, and refused where they cannot be', async () => {
    const ids = Array.from({ length: 60 }, (_each, at) => `<reference-${at}@shop.example>`).join(' ');
    const mail = await arrived(plain('x', `References: ${ids}`));
    expect(isFit(mail.raw)).toBe(true);
    expect((await simpleParser(mail.raw)).references).toHaveLength(60);
    await arrivesEncoded(plain('x', `Subject: ${'x'.repeat(2000)}`));
    await handIn(plain('x', `References: <${'x'.repeat(1000)}@shop.example>`), /^550 5\.6\.0/);
    await handIn(plain('x', 'Message-ID: <\xff@x>'), /^550 5\.6\.[07]/);
  });

  test('structures that cannot be told are refused, where they have to be encoded', async () => {
    const open = `${FROM}\r\nContent-Type: multipart/mixed\r\n\r\n`;
    await handIn(`${open}${utf8('ü')}`, /^550 5\.6\.0/);
    await arrived(`${open}x`);
    const parts = Array.from({ length: 3000 }, () => '\r\nx');
    await handIn(`${FROM}\r\n${multipart('mixed', [...parts, utf8('\r\nü')])}`, /^550 5\.6\.0/);
    await handIn(`${FROM}\r\n${multipart('mixed', ['no field \xff\r\n\r\nx'])}`, /^550 5\.6\.0/);
    await handIn(`${FROM}\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n${utf8('ü')}`, /^550 5\.6\.0/);
  });

  test('no file is left of what was sent or refused', async () => {
    const directory = join(bench.service.dataDir, 'mail');
    await retryCheck(async () => expect(readdirSync(directory)).toEqual([]));
  });
});
