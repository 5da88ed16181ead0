// The process of the name server.
import { openQueue } from '../../../core/in_turn';
import { openProcessChannel } from '../../../core/process/channel';
import { dnsQuestions } from '../../../core/protocols/dns';
import { openAnswering, type Answering, type ZoneText } from '../answering';
import type { ProcessOptions } from './client';

let answering: Answering | null = null;

function opened(): Answering {
  if (!answering) throw new Error('not open');
  return answering;
}

// Zones are taken over in the order in which they changed.
const inTurn = openQueue();
openProcessChannel(process, {
  open: (options: ProcessOptions) =>
    inTurn(async () => {
      answering = openAnswering(options, dnsQuestions(options));
    }),
  put: (zones: ZoneText[]) => inTurn(async () => opened().put(zones)),
  remove: (id: string) => inTurn(async () => opened().remove(id)),
  listen: (ports: number[]) => inTurn(async () => opened().listen(ports)),
  takeCounters: () => inTurn(async () => opened().takeCounters()),
});
// It ends with the process that started it: a terminal sends its signals to both.
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
