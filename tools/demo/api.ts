// A client of the public API, as any user has it: fetch, a key, a project.
import { setTimeout as sleep } from 'node:timers/promises';

/** The caller validates the content of a response. */
export interface Resource {
  id: string;
  status: string;
  status_reason: string | null;
  [name: string]: unknown;
}

export interface Api {
  /** @throws Error with the detail of the problem document */
  call<T = Resource>(method: string, place: string, body?: object): Promise<T>;
  /** Polls until `enough` is true. @throws Error when that takes too long */
  until<T = Resource>(place: string, enough: (found: T) => boolean, withinMs?: number): Promise<T>;
  /** Deletes a resource, and removes it from the bin. */
  remove(place: string): Promise<void>;
  /** Hands over each event of a live tail. Returns how to end it. */
  tail<T>(place: string, each: (event: T) => void): () => Promise<void>;
}

const POLL_MS = 100;
const CALL_WITHIN_MS = 70_000;

export function apiClient(base: string, key: string, project: string): Api {
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project, 'Content-Type': 'application/json' };
  const api: Api = {
    async call(method, place, body) {
      const response = await fetch(base + place, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CALL_WITHIN_MS),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${place} answered ${response.status}: ${text}`);
      return (text ? JSON.parse(text) : null) as never;
    },
    async until(place, enough, withinMs = 30_000) {
      for (const end = Date.now() + withinMs; ; await sleep(POLL_MS)) {
        const found = await api.call('GET', place);
        if (enough(found as never)) return found as never;
        if (Date.now() > end) throw new Error(`waited ${withinMs} ms in vain for ${place}: ${JSON.stringify(found)}`);
      }
    },
    async remove(place) {
      await api.call('DELETE', place);
      const bin = `/v2/projects/${project}/bin?resource_id=${place.slice(place.lastIndexOf('/') + 1)}`;
      for (const { id } of (await api.call<{ data: { id: string }[] }>('GET', bin)).data)
        await api.call('DELETE', `/v2/bin/${id}`);
    },
    tail(place, each) {
      const stop = new AbortController();
      const reading = readEvents(base + place, { ...headers, Accept: 'text/event-stream' }, stop.signal, (data) =>
        each(JSON.parse(data) as never),
      ).catch((error: unknown) => {
        if (!stop.signal.aborted) throw error;
      });
      return () => (stop.abort(), reading);
    },
  };
  return api;
}

/** Server-sent events: the `data` of each. */
async function readEvents(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
  each: (data: string) => void,
): Promise<void> {
  const response = await fetch(url, { headers, signal });
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = event
        .split('\n')
        .filter((line) => line.startsWith('data: '))
        .map((line) => line.slice(6))
        .join('\n');
      if (data) each(data);
    }
  }
}
