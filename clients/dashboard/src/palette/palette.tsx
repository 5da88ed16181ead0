// The palette over a page: a modal dialog with the combobox in it.
import { useLayoutEffect } from 'preact/hooks';
import type { PaletteMode } from '../keyboard';
import type { Typed } from '../palette_host';
import { useModal } from '../parts/modal';
import { CommandBox } from './command_box';

interface PaletteProps {
  mode: PaletteMode;
  /** Before the palette was there. */
  typed: Typed;
  onClose(): void;
}

export function Palette({ mode, typed, onClose }: PaletteProps) {
  const element = useModal(onClose);
  useLayoutEffect(() => element.current?.querySelector('input')?.focus(), []);
  return (
    <dialog
      ref={element}
      class="palette"
      aria-label="Command palette"
      onClick={(event) => event.target === element.current && onClose()}
    >
      <CommandBox mode={mode} {...typed} onDone={onClose} />
    </dialog>
  );
}
