// Zone transfer (AXFR, RFC 5936) from an external server, where it allows that.
import { connect } from 'node:net';
import * as packet from 'dns-packet';

const BYTES_MAX = 8 << 20;

/** @returns the records without the final SOA; null where the server refuses the transfer, or it is incomplete */
export function readTransfer(
  zone: string,
  { address, port }: { address: string; port: number },
  signal: AbortSignal,
): Promise<packet.Answer[] | null> {
  const query = packet.streamEncode({ type: 'query', id: 1, flags: 0, questions: [{ type: 'AXFR', name: zone }] });
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, signal });
    const found: packet.Answer[] = [];
    let waiting: Buffer = Buffer.alloc(0);
    let bytes = 0;
    const end = (records: packet.Answer[] | null): void => {
      socket.destroy();
      resolve(records);
    };
    socket.on('connect', () => socket.write(query));
    socket.on('error', () => end(null));
    socket.on('close', () => end(null));
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      waiting = Buffer.concat([waiting, chunk]);
      if (bytes > BYTES_MAX) return end(null);
      const verdict = takeMessages();
      if (verdict === 'refused') end(null);
      if (verdict === 'whole') end(found.slice(0, -1));
    });
    function takeMessages(): 'more' | 'refused' | 'whole' {
      while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
        const length = waiting.readUInt16BE(0);
        const answers = answersOf(waiting.subarray(2, 2 + length));
        waiting = waiting.subarray(2 + length);
        if (!answers || (!found.length && answers[0]?.type !== 'SOA')) return 'refused';
        found.push(...answers);
        // A transfer begins and ends with the SOA (RFC 5936 §2.2).
        if (found.length > 1 && found.at(-1)?.type === 'SOA') return 'whole';
      }
      return 'more';
    }
  });
}

function answersOf(message: Buffer): packet.Answer[] | null {
  try {
    const { answers = [], rcode } = packet.decode(message) as packet.DecodedPacket & { rcode?: string };
    return rcode === 'NOERROR' && answers.length ? answers : null;
  } catch {
    return null;
  }
}
