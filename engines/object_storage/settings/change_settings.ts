// Changes of bucket settings by S3 clients: authorisation, write, response.
import { requireGranted, type Exchange } from '../endpoint_context';
import { sendEmpty } from '../respond';

type Change = Parameters<Exchange['catalog']['changeBucket']>[1];

export async function changeBucketSettings(
  exchange: Exchange,
  action: Parameters<typeof requireGranted>[1],
  to: Change | (() => Promise<Change>),
  status = 200,
): Promise<void> {
  requireGranted(exchange, action, '');
  await exchange.catalog.changeBucket(exchange.bucket, typeof to === 'function' ? await to() : to);
  sendEmpty(exchange, status);
}
