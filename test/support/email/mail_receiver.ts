// A mail server of somebody else: takes what is sent to it, judges it as receivers do, and refuses what the local part
// of the recipient asks it to refuse.
import { Resolver } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import { authenticate } from 'mailauth';
import { SMTPServer } from 'smtp-server';

export interface ReceivedMail {
  from: string;
  to: string;
  raw: string;
  secure: boolean;
  /** What MAIL has announced. */
  smtpUtf8: boolean;
  bodyType: string;
}

export interface Verdict {
  spf: string;
  dkim: string[];
  dmarc: string;
}

export interface MailReceiver {
  port: number;
  mails: ReceivedMail[];
  /** Resolves with the next mail to the address. */
  mailTo(address: string, withinMs?: number): Promise<ReceivedMail>;
  judge(mail: ReceivedMail, dnsAddress: string): Promise<Verdict>;
  /** How often a recipient was tried. */
  tried(address: string): number;
  close(): Promise<void>;
}

const REPLIES: Record<string, [number, string]> = {
  hard: [550, '5.1.1 No such user'],
  policy: [554, '5.7.1 Not wanted here'],
  full: [452, '4.2.2 Mailbox full'],
};

export async function startMailReceiver(
  options: {
    host?: string;
    port?: number;
    tls?: { key: string; cert: string };
    hideSMTPUTF8?: boolean;
    hide8BITMIME?: boolean;
    /** Code and text for a recipient, or for a message to it. */
    refuse?(address: string, stage: 'rcpt' | 'data'): readonly [number, string] | undefined;
  } = {},
): Promise<MailReceiver> {
  const { host = '127.0.0.1', port = 0, tls, hideSMTPUTF8 = false, hide8BITMIME = false, refuse } = options;
  const mails: ReceivedMail[] = [];
  const tries = new Map<string, number>();
  const server = new SMTPServer({
    ...{ authOptional: true, disabledCommands: ['AUTH'], logger: false, disableReverseLookup: true, closeTimeout: 100 },
    ...{ ...tls, hideSMTPUTF8, hide8BITMIME, lenientAddressParsing: true },
    onRcptTo({ address }, _session, callback) {
      tries.set(address, (tries.get(address) ?? 0) + 1);
      const [local = ''] = address.split(/[-@]/);
      const again = local === 'greylisted' && tries.get(address) === 1 ? [451, '4.7.1 Come back later'] : undefined;
      const [code, text] = (refuse?.(address, 'rcpt') ?? again ?? REPLIES[local] ?? []) as [number?, string?];
      if (!code) return callback();
      callback(Object.assign(new Error(text), { responseCode: code }));
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      const { mailFrom, rcptTo, smtpUtf8 = false, bodyType = '' } = session.envelope;
      const from = mailFrom ? mailFrom.address : '';
      const to = rcptTo.map(({ address }) => address);
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const [code, text] = to.map((each) => refuse?.(each, 'data')).find((answer) => answer) ?? [];
        if (code) return callback(Object.assign(new Error(text), { responseCode: code }));
        const raw = Buffer.concat(chunks).toString('latin1');
        for (const each of to) mails.push({ from, to: each, raw, secure: session.secure, smtpUtf8, bodyType });
        callback();
      });
    },
  });
  server.on('error', () => {});
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    tried: (address) => tries.get(address) ?? 0,
    async mailTo(address, withinMs = 15_000) {
      for (const until = Date.now() + withinMs; Date.now() < until;) {
        const at = mails.findIndex(({ to }) => to === address);
        if (at !== -1) return mails.splice(at, 1)[0] as ReceivedMail;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error(`no mail to ${address}`);
    },
    judge: (mail, dnsAddress) => authenticateMail(mail, dnsAddress),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** As a receiver that is reached from 192.0.2.1. */
async function authenticateMail({ raw, from, to }: ReceivedMail, dnsAddress: string): Promise<Verdict> {
  const dns = new Resolver();
  dns.setServers([dnsAddress]);
  const result = await authenticate(Buffer.from(raw, 'latin1'), {
    ...{ ip: '192.0.2.1', helo: 'smtp.example.net', sender: from, recipient: to, disableArc: true, disableBimi: true },
    resolver: (name: string, type: string) => dns.resolve(name, type),
  } as unknown as Parameters<typeof authenticate>[1]);
  const { spf, dkim, dmarc } = result as unknown as {
    spf: { status: { result: string } };
    dkim: { results: { status: { result: string }; algo: string }[] };
    dmarc: { status?: { result: string } } | false;
  };
  return {
    spf: spf.status.result,
    dkim: dkim.results.map(({ status, algo }) => `${algo} ${status.result}`).sort(),
    dmarc: (dmarc && dmarc.status?.result) || 'none',
  };
}
