import { useMemo, useRef, useState } from 'preact/hooks';
import { Button } from './controls/button.tsx';
import { Dialog } from './controls/dialog.tsx';
import type { Leaving, WayOut } from './router.ts';
import { TEXTS } from './texts.ts';

/** Asks before a person leaves a screen. Also returns the question, to show it over everything. */
export function useLeaving() {
  /**
   * The functions that end the holds. There can be several: a value can be shown over another one.
   */
  const holds = useRef(new Set<() => void>());
  const [way, setWay] = useState<WayOut>();
  const leaving = useMemo((): Leaving => {
    const ask = (asked: WayOut) => (holds.current.size > 0 ? setWay(asked) : asked.leave());
    return { ask, hold: () => holdIn(holds.current), dismiss: () => setWay(undefined) };
  }, []);
  const leave = () => {
    for (const end of holds.current) end();
    setWay(undefined);
    way?.leave();
  };
  const stay = () => {
    setWay(undefined);
    way?.stay?.();
  };
  return { leaving, question: way && <LeaveDialog onLeave={leave} onStay={stay} /> };
}

function holdIn(holds: Set<() => void>): () => void {
  // The browser asks in words of its own before it closes or reloads the page.
  const warn = (event: Event) => event.preventDefault();
  addEventListener('beforeunload', warn);
  const end = () => {
    removeEventListener('beforeunload', warn);
    holds.delete(end);
  };
  holds.add(end);
  return end;
}

interface LeaveDialogProps {
  readonly onLeave: () => void;
  readonly onStay: () => void;
}

function LeaveDialog({ onLeave, onStay }: LeaveDialogProps) {
  return (
    <Dialog title={TEXTS.value.leaveTitle} onCancel={onStay}>
      <p>{TEXTS.value.notCopied}</p>
      <div class="actions">
        <Button kind="primary" onClick={onStay}>
          {TEXTS.value.stay}
        </Button>
        <Button kind="danger" onClick={onLeave}>
          {TEXTS.value.leave}
        </Button>
      </div>
    </Dialog>
  );
}
