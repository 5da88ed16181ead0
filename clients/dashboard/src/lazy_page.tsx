// A page whose file is loaded when it is opened.
import type { ComponentType } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { ApiError, UNREACHABLE } from './api/client';
import { useAgain } from './api/use_query';
import { Waiting } from './parts/page';

// oxlint-disable-next-line typescript/no-explicit-any -- each page has the parameters of its own path
type AnyPage = ComponentType<any>;
type Load = () => Promise<AnyPage>;

const loaded = new Map<Load, AnyPage>();
/** A document that is younger has the files of the release that serves. */
const RELOAD_AFTER_MS = 10_000;

export function LazyPage({ load, given }: { load: Load; given: Record<string, string> }) {
  const [Page, setPage] = useState<AnyPage | null>(() => loaded.get(load) ?? null);
  const [error, setError] = useState<ApiError | null>(null);
  const open = useCallback(async () => {
    try {
      const found = await load();
      loaded.set(load, found);
      setPage(() => found);
    } catch {
      if (!(await reloadDocument())) setError(new ApiError('unreachable', 0, UNREACHABLE));
    }
  }, [load]);
  useEffect(() => {
    if (!Page) void open();
  }, [open]);
  useAgain(Page ? null : error, open);
  if (Page) return <Page {...given} />;
  return (
    <main id="main" tabIndex={-1}>
      <Waiting error={error} />
    </main>
  );
}

/** Begins to load a page that is shown soon. One that cannot be loaded is asked for again then, which says so. */
export function preloadPage(load: Load): void {
  load().then(
    (found) => loaded.set(load, found),
    () => undefined,
  );
}

/** After an upgrade the file has another name, which the document knows. A browser may also keep that it failed. */
async function reloadDocument(): Promise<boolean> {
  if (performance.now() < RELOAD_AFTER_MS) return false;
  const answer = await fetch(location.href, { method: 'HEAD', headers: { Accept: 'text/html' } }).catch(() => null);
  if (!answer?.ok) return false;
  location.reload();
  return true;
}
