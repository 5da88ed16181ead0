// Messages that nothing may be sent in response to.
import { fieldsNamed, valueOf, type HeaderField } from './header';

const REPORT = /report-type\s*=\s*"?(?:disposition-notification|delivery-status)\b/i;

/** Automatic replies (RFC 3834), receipts (RFC 8098) and reports of a failed delivery (RFC 3464). */
export function isAutomaticAnswer(fields: readonly HeaderField[]): boolean {
  const value = (name: string): string => fieldsNamed(fields, name).map(valueOf).join(' ');
  if (/^auto-replied\b/i.test(value('auto-submitted'))) return true;
  const type = value('content-type');
  return /^multipart\/report\b/i.test(type) && REPORT.test(type);
}
