// Messages of domains with tracking: a link of the platform for each link, and a picture at the end.
import { isAscii } from 'node:buffer';
import { Readable } from 'node:stream';
import { mailLink, openPicture } from '../../../core/mail/mail_links';
import { returnPathLocal } from '../../../core/mail/mail_reference';
import type { SecretBox } from '../../../core/secrets';
import { type SigningIdentity, parseHeader, signedHeader, rewriteHtml, type Outbound } from '../../../engines/mail';
import type { ClaimedDelivery } from '../../../models/email/mail/queue';
import { referenceField } from './mail_loop';
import type { MailStore } from './store';

/** Larger messages are sent without tracking: they would have to be held in memory. */
const BYTES_MAX = 5 * 1024 * 1024;

export function trackedMessage(parts: { baseUrl(): string; secrets: SecretBox; store: MailStore }) {
  const { baseUrl, secrets, store } = parts;
  return async (
    delivery: ClaimedDelivery,
    identities: readonly SigningIdentity[],
    from: string,
  ): Promise<Outbound | null> => {
    const { domain, recipient: to, size_bytes } = delivery;
    if (!(domain?.open_tracking || domain?.click_tracking) || size_bytes > BYTES_MAX) return null;
    const text = await store.textOf(delivery);
    const body = await rewriteHtml(text, {
      link: (url) => (domain.click_tracking ? mailLink(secrets, baseUrl(), delivery, url) : url),
      ending: domain.open_tracking ? openPicture(secrets, baseUrl(), delivery) : '',
    }).catch(() => null);
    const given = body && parseHeader(body.raw.toString('latin1', 0, body.bodyOffset - 4));
    if (!body || !given) return null;
    const fields = [referenceField(returnPathLocal(secrets, delivery)), ...given];
    const head = await signedHeader(fields, { identities, body_hash: body.bodyHash });
    const rest = body.raw.subarray(body.bodyOffset);
    return {
      from,
      to,
      size: head.length + rest.length,
      needsUtf8: !isAscii(head),
      isEightBit: () => Promise.resolve(!isAscii(rest)),
      content: () => Readable.from([head, rest], { objectMode: false }),
    };
  };
}
