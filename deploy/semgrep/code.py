"""One line for each thing that a rule of code.yaml is there for, and what it must let pass."""

# ruleid: no-data-as-code
import pickle
import subprocess

# ruleid: docker-past-the-adapter
import docker
import requests
import yaml
# ruleid: docker-past-the-adapter
from docker.errors import APIError
from django.http import HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
# ruleid: no-xml
from xml.etree import ElementTree


def shells(name):
    # ruleid: no-shell
    os.system("ls " + name)
    # ruleid: no-shell
    subprocess.run(["ls", name], shell=True)
    # ruleid: no-shell
    subprocess.run(f"ls {name}")
    # ruleid: no-shell
    subprocess.check_output("ls")
    # ruleid: no-shell
    subprocess.run("ls " + name, check=True)
    # ruleid: no-shell
    asyncio.create_subprocess_shell("ls")
    # ok: no-shell
    subprocess.run(["ls", "--", name], check=True)


def data(text):
    # ruleid: no-data-as-code
    eval(text)
    # ruleid: no-data-as-code
    yaml.load(text, Loader=yaml.Loader)
    # ok: no-data-as-code
    yaml.safe_load(text)


def files(archive, folder):
    # ruleid: no-unpacking-past-the-filter
    archive.extractall(folder)
    # ok: no-unpacking-past-the-filter
    archive.extractall(folder, filter="data")
    # ruleid: no-guessed-file-name
    return tempfile.mktemp()


def markup(name):
    # ruleid: no-unescaped-text
    return mark_safe(f"<b>{name}</b>")


def peers(address):
    # ruleid: request-without-end
    requests.get(address)
    # ok: request-without-end
    requests.post(address, timeout=10)
    # ruleid: unchecked-certificate
    requests.get(address, timeout=10, verify=False)


def onward(request):
    # ruleid: redirect-to-what-was-asked
    return redirect(request.GET["next"])


def onward_later(request):
    target = request.POST.get("next", "/")
    # ruleid: redirect-to-what-was-asked
    return HttpResponseRedirect(target)


def home(request):
    # ok: redirect-to-what-was-asked
    return HttpResponseRedirect("/")


def queries(connection, name):
    # ruleid: query-by-hand
    name.objects.raw("SELECT 1")
    # ruleid: query-by-hand
    with connection.cursor() as cursor:
        # ruleid: query-by-hand
        cursor.execute(f"SELECT {name}")


# ruleid: form-without-csrf
@csrf_exempt
def form(request):
    return None



from cryptography.fernet import Fernet
from trailer import secrets
from trailer.secrets import decrypt


def seal(row, key, value):
    # ruleid: sealed-elsewhere
    row.password = secrets.encrypt(value, "somewhere")
    # ruleid: sealed-elsewhere
    Fernet(key).encrypt(value)
    # ruleid: sealed-elsewhere
    return decrypt(row.password, "somewhere")


def compare(given_token, row, hmac):
    # ruleid: secret-compared-in-plain
    if given_token == row.token:
        return True
    # ruleid: secret-compared-in-plain
    if row.webhook_signature != given_token:
        return False
    # ok: secret-compared-in-plain
    if given_token == "":
        return False
    # ok: secret-compared-in-plain
    return hmac.compare_digest(given_token, row.token)



class Views(ResourceViewSet):
    # ok: unscoped-read
    queryset = Workspace.objects.select_related("host")

    def stop(self, request, pk):
        # ruleid: unscoped-read
        return Workspace.objects.get(pk=pk)


def page(request, pk):
    # ruleid: unscoped-read
    Image.objects.filter(pk=pk).first()
    # ruleid: unscoped-read
    Volume.objects.all()
    # ok: unscoped-read
    return Workspace.objects.visible_to(request.user).get(pk=pk)
