// Starts the page: who is signed in, then the page of the address.
import '@picocss/pico/css/pico.classless.min.css';
import './styles/tokens.css';
import './styles/frame.css';
import './styles/bar.css';
import './styles/side.css';
import './styles/palette.css';
import './styles/parts.css';
import './styles/lists.css';
import './styles/tables.css';
import './styles/forms.css';
import './styles/logs.css';
import './styles/state.css';
import './styles/journeys.css';
import { render, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { asApiError } from './api/use_query';
import { ApiError, UNREACHABLE } from './api/client';
import { Keys, startKeyboard } from './keyboard';
import { startFocus } from './parts/focus';
import { PaletteHost } from './palette_host';
import { Notices } from './parts/notices';
import { LeaveQuestion } from './parts/leave_question';
import { Waiting } from './parts/page';
import { pages } from './pages';
import { address, matchPath, navigate, startRouter } from './router';
import { loadSession, viewer } from './session';
import { Shell } from './shell';
import { startTheme } from './theme';

/** Pages for people who are not signed in. */
const OPEN = ['/sign-in', '/welcome'];

function App() {
  const [error, setError] = useState<ApiError | null>(null);
  const { path } = address.value;
  const isOpen = OPEN.includes(path);
  useEffect(() => {
    if (!isOpen && viewer.value === undefined) loadSession().catch((problem: unknown) => setError(asApiError(problem)));
  }, [isOpen]);
  useEffect(() => {
    if (viewer.value === null && !isOpen) {
      const to = location.pathname + location.search;
      navigate(to === '/' ? '/sign-in' : `/sign-in?return_to=${encodeURIComponent(to)}`, 'replace');
    }
  }, [viewer.value, isOpen]);
  if (isOpen) return <Shell isOpen>{<CurrentPage />}</Shell>;
  if (!viewer.value) {
    return (
      <Shell isOpen={false}>
        <main id="main" tabIndex={-1}>
          <h1 class="off-screen">Dashboard</h1>
          <Waiting error={error} />
        </main>
      </Shell>
    );
  }
  return (
    <Shell isOpen={false}>
      <CurrentPage />
      <PaletteHost />
      <Keys />
      <LeaveQuestion />
      <Notices />
    </Shell>
  );
}

function CurrentPage() {
  const { path } = address.value;
  for (const [pattern, load] of pages) {
    const found = matchPath(pattern, path);
    if (found) return <Lazy key={path} load={load} given={found} />;
  }
  return (
    <main id="main" tabIndex={-1}>
      <h1>Page not found</h1>
      <p>
        There is no page at <code>{path}</code>. <a href="/">All projects</a>
      </p>
    </main>
  );
}

type Load = (typeof pages)[number][1];
// oxlint-disable-next-line typescript/no-explicit-any -- each page has the parameters of its own path
type AnyPage = ComponentType<any>;

const loaded = new Map<Load, AnyPage>();

function Lazy({ load, given }: { load: Load; given: Record<string, string> }) {
  const [Page, setPage] = useState<AnyPage | null>(() => loaded.get(load) ?? null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    if (Page) return;
    load().then(
      (found) => {
        loaded.set(load, found);
        setPage(() => found);
      },
      () => setError(new ApiError('unreachable', 0, UNREACHABLE)),
    );
  }, [load]);
  if (Page) return <Page {...given} />;
  return (
    <main id="main" tabIndex={-1}>
      <Waiting error={error} />
    </main>
  );
}

/** The script of the page is on its way while the session is asked for. */
function preloadPage(): void {
  const [, load] = pages.find(([pattern]) => matchPath(pattern, location.pathname)) ?? [];
  load?.().then(
    (found) => loaded.set(load, found),
    // Asked for again when the page is shown, which says so.
    () => undefined,
  );
}

startTheme();
preloadPage();
startRouter();
startKeyboard();
startFocus();
render(<App />, document.getElementById('app') as HTMLElement);
