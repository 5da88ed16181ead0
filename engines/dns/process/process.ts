// A process of the name server: it answers itself, or has others answer on the port that it holds.
import cluster from 'node:cluster';
import { dnsQuestions } from '../../../core/protocols/dns';
import { openAnswering, type Answering, type ZoneText } from '../answering';
import { openGroup, type GroupOptions } from './group';
import { answerCalls } from './ipc';

let answering: Answering | null = null;

function opened(): Answering {
  if (!answering) throw new Error('not open');
  return answering;
}

answerCalls({
  async open(options: GroupOptions) {
    const isAlone = cluster.isWorker || options.count === 1;
    answering = isAlone ? openAnswering(options, dnsQuestions(options)) : await openGroup(options);
  },
  put: (zones: ZoneText[]) => opened().put(zones),
  remove: (id: string) => opened().remove(id),
  listen: (ports: number[]) => opened().listen(ports),
  takeCounters: () => opened().takeCounters(),
});
// It ends with the process that started it: a terminal sends its signals to both.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
