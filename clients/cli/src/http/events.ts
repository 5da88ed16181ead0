// Server-sent events (HTML Living Standard, section 9.2).
import type { Readable } from 'node:stream';

interface ServerEvent {
  type: string;
  id?: string;
  data: string;
}

/** Events in the order in which they come; those without data are left out, as the standard has it. */
export async function* readEvents(stream: Readable): AsyncGenerator<ServerEvent> {
  let rest = '';
  let event: { type: string; id?: string; data: string[] } = { type: 'message', data: [] };
  stream.setEncoding('utf8');
  for await (const part of stream) {
    const lines = (rest + (part as string)).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() as string;
    for (const line of lines) {
      if (line !== '') {
        addLine(event, line);
        continue;
      }
      if (event.data.length) yield { ...event, data: event.data.join('\n') };
      event = { type: 'message', data: [] };
    }
  }
}

function addLine(event: { type: string; id?: string; data: string[] }, line: string): void {
  const [, name = '', value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
  if (name === 'data') event.data.push(value);
  else if (name === 'event') event.type = value;
  else if (name === 'id') event.id = value;
}
