// Messages of domains with tracking.
import type { SecretBox } from '../core/secrets';
import type { SigningIdentity } from '../drivers/mail/dkim_signature';
import type { Outbound } from '../drivers/mail/transport';
import type { ClaimedDelivery } from '../models/mail/queue';
import type { MailStore } from './mail_store';

export function trackedMessage(_parts: { baseUrl(): string; secrets: SecretBox; store: MailStore }) {
  return async (
    _delivery: ClaimedDelivery,
    _identities: readonly SigningIdentity[],
    _from: string,
  ): Promise<Outbound | null> => null;
}
