// DNS cookies (RFC 7873) in the format of RFC 9018: a valid server cookie proves that the client address is not forged.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const VERSION = 1;
const CLIENT_BYTES = 8;
const SERVER_BYTES = 16;
/** RFC 9018 §4.3. */
const OLDEST_S = 3600;
const NEWEST_S = 300;

export interface Cookies {
  /** The cookie of the response: client part and server part. */
  reply(sent: Buffer, address: string): Buffer;
  /** Whether the client sent a valid server cookie for its address. */
  isValid(sent: Buffer, address: string): boolean;
}

/** @param secret shared by all processes that answer at the same address */
export function openCookies(secret: Buffer = randomBytes(16)): Cookies {
  const serverPart = (client: Buffer, address: string, seconds: number): Buffer => {
    const head = Buffer.alloc(8);
    head.writeUInt8(VERSION, 0);
    head.writeUInt32BE(seconds, 4);
    const mac = createHmac('sha256', secret).update(client).update(head).update(address).digest();
    return Buffer.concat([head, mac.subarray(0, 8)]);
  };
  return {
    reply(sent, address) {
      const client = sent.subarray(0, CLIENT_BYTES);
      return Buffer.concat([client, serverPart(client, address, Math.floor(Date.now() / 1000))]);
    },
    isValid(sent, address) {
      const server = sent.subarray(CLIENT_BYTES);
      if (server.length !== SERVER_BYTES) return false;
      const seconds = server.readUInt32BE(4);
      const age = Math.floor(Date.now() / 1000) - seconds;
      if (age > OLDEST_S || age < -NEWEST_S) return false;
      return timingSafeEqual(server, serverPart(sent.subarray(0, CLIENT_BYTES), address, seconds));
    },
  };
}
