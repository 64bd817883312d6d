"""browser.py - controls a headless Chromium with the DevTools protocol over two pipes."""
import base64
import fcntl
import json
import os
import select
import subprocess
import time

FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
         '--host-resolver-rules=MAP * ~NOTFOUND', '--remote-debugging-pipe')


class Browser:
    def __init__(self, program, profile):
        to, self.write = os.pipe()
        self.read, back = os.pipe()
        high = [fcntl.fcntl(f, fcntl.F_DUPFD, 10) for f in (to, back)]
        self.process = subprocess.Popen([program, *FLAGS, f'--user-data-dir={profile}', 'about:blank'], pass_fds=(3, 4), stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: (os.dup2(high[0], 3), os.dup2(high[1], 4)))
        for f in (to, back, *high):
            os.close(f)
        self.rest, self.number, self.session, self.events = b'', 0, None, []
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = self.ask('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(domain + '.enable')

    def message(self, until):
        """Returns the next message. Raises TimeoutError after the time limit."""
        while b'\0' not in self.rest:
            if not select.select([self.read], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError('Chromium does not answer')
            more = os.read(self.read, 1 << 16)
            if not more:
                raise EOFError('Chromium has ended')
            self.rest += more
        one, _, self.rest = self.rest.partition(b'\0')
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        what = {'id': self.number, 'method': method, 'params': params} | ({'sessionId': self.session} if self.session else {})
        data = json.dumps(what).encode() + b'\0'
        while data:
            data = data[os.write(self.write, data):]
        until = time.monotonic() + 60
        while True:
            answer = self.message(until)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']
            self.events.append(answer)

    def wait(self, event):
        until = time.monotonic() + 60
        while not any(e.get('method') == event for e in self.events):
            self.events.append(self.message(until))

    def look(self, width, scheme='light', media='', motion='reduce', height=900):
        """Sets the width, colour scheme and medium for the pages that follow."""
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask('Emulation.setEmulatedMedia', media=media, features=[{'name': 'prefers-color-scheme', 'value': scheme},
                                                                      {'name': 'prefers-reduced-motion', 'value': motion}])

    def open(self, url):
        """Loads a page. self.events then holds the events since the call."""
        self.events = []
        self.ask('Page.navigate', url=url)
        self.wait('Page.loadEventFired')

    def run(self, script):
        said = self.ask('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in said:
            raise RuntimeError(str(said['exceptionDetails'])[:500])
        return said['result'].get('value')

    def key(self, key):
        for kind in ('keyDown', 'keyUp'):
            text = {'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}
            self.ask('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode={'Tab': 9, 'Enter': 13, 'ArrowUp': 38, 'ArrowDown': 40}[key], **text)

    def shot(self, path, most=2400):
        size = self.ask('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': min(size['height'], most), 'scale': 1}
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.ask('Page.captureScreenshot', format='png', captureBeyondViewport=True, clip=clip, optimizeForSpeed=True)['data']))

    def close(self):
        try:
            self.ask('Browser.close')
            self.process.wait(20)
        except (OSError, EOFError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
