// The palette, loaded when it is first opened, or when the page has nothing else to do. Until it is there, a plain
// field stands in its place: what is typed right after Ctrl-K would reach the page.
import { useEffect, useRef, useState } from 'preact/hooks';
import { paletteMode } from './keyboard';
import type * as PaletteModule from './palette/palette';
import { useAutoFocus } from './parts/focus';
import { useModal } from './parts/modal';

type Loaded = typeof PaletteModule;

const load = (): Promise<Loaded> => import('./palette/palette');
/** After the first page is there. */
const PRELOAD_MS = 2_000;

export interface Typed {
  text: string;
  /** Enter was pressed behind it. */
  isEntered: boolean;
}

const close = (): void => void (paletteMode.value = null);

export function PaletteHost() {
  const [module, setModule] = useState<Loaded | null>(null);
  const typed = useRef<Typed>({ text: '', isEntered: false });
  const mode = paletteMode.value;
  useEffect(() => {
    if (module) return undefined;
    const get = (): void => void load().then(setModule, close);
    if (mode) return get();
    const timer = setTimeout(get, PRELOAD_MS);
    return () => clearTimeout(timer);
  }, [mode, module]);
  if (!mode) typed.current = { text: '', isEntered: false };
  if (!mode) return null;
  if (!module) return <Loading typed={typed.current} />;
  return <module.Palette mode={mode} typed={typed.current} onClose={close} />;
}

function Loading({ typed }: { typed: Typed }) {
  const element = useModal(close);
  const field = useAutoFocus();
  return (
    <dialog ref={element} class="palette" aria-label="Command palette">
      <div class="command-box">
        <input
          ref={field}
          type="text"
          aria-label="Loading the palette …"
          placeholder="Loading the palette …"
          onInput={(event) => Object.assign(typed, { text: event.currentTarget.value, isEntered: false })}
          onKeyDown={({ key, isComposing }) => void (typed.isEntered = key === 'Enter' && !isComposing)}
        />
      </div>
    </dialog>
  );
}
