"""A phone and where it is: what follows from its settings, how a task's first state is made, and what is asserted.

Written from the published tasks and from what the published phone does. The invariant: what the phone is connected to
follows from its settings and surroundings; it is worked out anew by each change that makes the published phone look for
a network, and only then, so that a task's golden actions lead where they lead there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .toolkit import ToolError, Toolkit, reads, writes

DEFAULT_APN = {
    "apn_name": "internet",
    "reset_at_reboot": False,
    "mms_apn": "mms",
    "mmsc_url": "http://mms.carrier.com/mms/wapenc",
    "mms_proxy": None,
    "mms_port": None,
}
"""What a phone has that was never changed, and has again after a reset."""
SIGNALS = {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"}
"""How strong each network is where the customer is, unless a task says otherwise."""
PERMISSIONS = ("sms", "storage", "phone", "network")
_TECHNOLOGIES = {"4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
# Mbit/s in the middle of what each technology offers, and the share of it that a signal leaves.
_SPEEDS = {"2G": 0.25, "3G": 3.0, "4G": 55.0, "5G": 275.0}
_SHARES = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
SPEEDS = (
    (1.0, "Very Poor", "Even simple pages load slowly."),
    (5.0, "Poor", "Pages load slowly, and videos hardly play."),
    (25.0, "Fair", "Enough for pages and for videos of low quality."),
    (100.0, "Good", "Enough for most things, sharp videos included."),
    (float("inf"), "Excellent", "Very fast."),
)
"""What a speed in Mbit/s below the number is called, and what it is good for."""


def settled(data: dict[str, Any]) -> dict[str, Any]:
    """Data of a phone and its surroundings, with what a file may leave out."""
    device, around = dict(data.get("device", {})), dict(data.get("surroundings", {}))
    device["active_apn_settings"] = {**DEFAULT_APN, **device.get("active_apn_settings", {})}
    device.setdefault("wifi_ssid", None)
    device.setdefault("vpn_details", None)
    nowhere = {
        "name": None,
        "phone_number": None,
        "is_abroad": False,
        "roaming_allowed": False,
        "signal_strength": dict(SIGNALS),
        "mobile_data_usage_exceeded": False,
        "line_active": True,
        "payment_request": None,
    }
    return {"device": device, "surroundings": {**nowhere, **around}}


class Handset(Toolkit):
    """A phone without tools that a person may use. Its database has `device` and `surroundings`."""

    name: ClassVar[str] = "handset"

    # -- for first states ----------------------------------------------------------------------------------------------

    @writes(by="nobody")
    def set_user_info(self, name: str, phone_number: str) -> None:
        """Say whose phone it is."""
        self._around.update({"name": name, "phone_number": phone_number})

    @writes(by="nobody")
    def set_user_location(self, abroad: bool) -> None:
        """Say where the phone is."""
        self._around["is_abroad"] = abroad

    @writes(by="nobody")
    def simulate_network_search(self) -> None:
        """Look for a network."""
        self._search()

    @writes(by="nobody")
    def turn_airplane_mode_on(self) -> None:
        """Turn Airplane Mode on."""
        self._set_airplane(True)

    @writes(by="nobody")
    def turn_airplane_mode_off(self) -> None:
        """Turn Airplane Mode off."""
        self._set_airplane(False)

    @writes(by="nobody")
    def turn_data_on(self) -> None:
        """Turn mobile data on."""
        self._phone["data_enabled"] = True

    @writes(by="nobody")
    def turn_data_off(self) -> None:
        """Turn mobile data off."""
        self._set("data_enabled", False)

    @writes(by="nobody")
    def turn_roaming_on(self) -> None:
        """Turn data roaming on."""
        self._set("roaming_enabled", True)

    @writes(by="nobody")
    def turn_roaming_off(self) -> None:
        """Turn data roaming off."""
        self._set("roaming_enabled", False)

    @writes(by="nobody")
    def turn_data_saver_mode_on(self) -> None:
        """Turn Data Saver mode on."""
        self._phone["data_saver_mode"] = True

    @writes(by="nobody")
    def turn_data_saver_mode_off(self) -> None:
        """Turn Data Saver mode off."""
        self._phone["data_saver_mode"] = False

    @writes(by="nobody")
    def unseat_sim_card(self) -> None:
        """Take the SIM card out."""
        self._set("sim_card_missing", True)

    @writes(by="nobody")
    def lock_sim_card(self, mode: Literal["pin", "puk"]) -> None:
        """Lock the SIM card, which no tool undoes."""
        self._set("sim_card_status", f"locked_{mode}")

    @writes(by="nobody")
    def break_apn_settings(self) -> None:
        """Give the phone settings with which no network takes it."""
        self._phone["active_apn_settings"]["apn_name"] = "broken"
        self._search()

    @writes(by="nobody")
    def break_apn_mms_setting(self) -> None:
        """Take the address for picture messages out of the settings."""
        self._phone["active_apn_settings"]["mmsc_url"] = None

    @writes(by="nobody")
    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> None:
        """Turn calls over Wi-Fi on or off, and picture messages over Wi-Fi."""
        self._phone["wifi_calling_enabled"] = enabled
        if mms_over_wifi is not None:
            self._phone["wifi_calling_mms_over_wifi"] = mms_over_wifi

    @writes(by="nobody")
    def break_vpn(self) -> None:
        """Connect to a VPN that is slow."""
        self._join_vpn("poor")

    @writes(by="nobody")
    def remove_app_permission(self, app_name: str, permission: str) -> None:
        """Forbid an app something."""
        self._permit(app_name, permission, False)

    # -- what is to be the case in the end -----------------------------------------------------------------------------

    @reads(by="nobody")
    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        """Whether Airplane Mode is as expected."""
        return bool(self._phone["airplane_mode"]) is expected_status

    @reads(by="nobody")
    def assert_service_status(self, expected_status: str) -> bool:
        """Whether the connection to the network is as expected."""
        return bool(self._phone["network_connection_status"] == expected_status)

    @reads(by="nobody")
    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        """Whether mobile data works."""
        return self._data_works() is expected_status

    @reads(by="nobody")
    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        """Whether data roaming is as expected."""
        return bool(self._phone["roaming_enabled"]) is expected_status

    @reads(by="nobody")
    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        """Whether Data Saver mode is as expected."""
        return bool(self._phone["data_saver_mode"]) is expected_status

    @reads(by="nobody")
    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        """Whether mobile data is at least so fast, in Mbit/s, and called so."""
        speed, word = self._speed()
        return (speed or 0.0) >= expected_speed and expected_desc in (None, word.lower())

    @reads(by="nobody")
    def assert_internet_not_excellent(self) -> bool:
        """Whether mobile data is not excellent."""
        return self._speed()[1] != "Excellent"

    @reads(by="nobody")
    def assert_can_send_mms(self, expected_status: bool) -> bool:
        """Whether picture messages can be sent."""
        return self._mms() is expected_status

    @reads(by="nobody")
    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        """Whether the plan's data is used up."""
        return bool(self._around["mobile_data_usage_exceeded"]) is expected_status

    # -- what the tools share ------------------------------------------------------------------------------------------

    @property
    def _phone(self) -> dict[str, Any]:
        device: dict[str, Any] = self.db["device"]
        return device

    @property
    def _around(self) -> dict[str, Any]:
        around: dict[str, Any] = self.db["surroundings"]
        return around

    def _told(self, text: str) -> str:
        return f"{text}\n{self._bar()}"

    def _bar(self) -> str:
        phone = self._phone
        shown = ["Airplane Mode"] if phone["airplane_mode"] else self._signal()
        if phone["wifi_enabled"] and phone["wifi_connected"]:
            shown.append(f"Wi-Fi {phone['wifi_ssid'] or 'connected'}")
        shown += ["VPN Connected"] if phone["vpn_connected"] else []
        return "Status Bar: " + " | ".join([*shown, f"Battery {phone['battery_level']}%"])

    def _signal(self) -> list[str]:
        phone = self._phone
        technology, signal = phone["network_technology_connected"], phone["network_signal_strength"]
        connected = technology != "none"
        shown = ["No Signal" if signal == "none" else f"Signal {signal}", *([technology] if connected else [])]
        if not (phone["data_enabled"] and connected):
            return [*shown, "Data Disabled"]
        return [*shown, "Data Enabled", *(["Data Saver"] if phone["data_saver_mode"] else [])]

    def _sim(self) -> str:
        return "missing" if self._phone["sim_card_missing"] else str(self._phone["sim_card_status"])

    def _data_works(self) -> bool:
        phone, around = self._phone, self._around
        reached = not phone["airplane_mode"] and phone["network_signal_strength"] != "none"
        served = reached and phone["network_connection_status"] != "no_service"
        allowed = not around["is_abroad"] or (phone["roaming_enabled"] and around["roaming_allowed"])
        return bool(served and allowed and phone["data_enabled"] and not around["mobile_data_usage_exceeded"])

    def _speed(self) -> tuple[float | None, str]:
        """Mbit/s, and what that is called."""
        if not self._data_works():
            return None, "No Connection"
        phone = self._phone
        details = phone["vpn_details"] or {}
        slowed = phone["vpn_connected"] and details.get("server_performance") == "poor"
        speed = _SPEEDS.get(phone["network_technology_connected"], 0.0)
        speed *= _SHARES.get(phone["network_signal_strength"], 0.0) * (0.1 if slowed else 1.0)
        speed = round(speed * (0.2 if phone["data_saver_mode"] else 1.0), 2)
        return speed, next(word for limit, word, _ in SPEEDS if speed < limit)

    def _mms(self) -> bool:
        phone = self._phone
        over_wifi = phone["wifi_calling_enabled"] and phone["wifi_calling_mms_over_wifi"]
        fast = self._data_works() and phone["network_technology_connected"] != "2G"
        rights = phone["app_statuses"].get("messaging", {}).get("permissions", {})
        allowed = rights.get("storage") and rights.get("sms")
        return bool(fast and not over_wifi and phone["active_apn_settings"]["mmsc_url"] is not None and allowed)

    def _search(self) -> None:
        """Look for a network: none is found without a SIM card, service and an active line."""
        phone, around = self._phone, self._around
        barred = phone["airplane_mode"] or phone["active_apn_settings"]["apn_name"] == "broken"
        if self._sim() != "active" or barred or not around["line_active"]:
            status, technology, signal = "no_service", "none", "none"
        else:
            strengths = around["signal_strength"]
            five = strengths.get("5G", "none") != "none"
            technology = _TECHNOLOGIES.get(phone["network_mode_preference"], "5G" if five else "4G")
            status, signal = "connected", strengths.get(technology, "none")
        phone |= {
            "network_connection_status": status,
            "network_technology_connected": technology,
            "network_signal_strength": signal,
        }

    def _set(self, setting: str, value: Any) -> None:
        self._phone[setting] = value
        self._search()

    def _toggle(self, setting: str, name: str, *, search: bool = False) -> str:
        phone = self._phone
        phone[setting] = not phone[setting]
        if search:
            self._search()
        return self._told(f"{name} is now {shown_switch(phone[setting])}.")

    def _set_airplane(self, on: bool) -> None:
        phone = self._phone
        if on or phone["wifi_enabled"]:
            self._leave_wifi()
        if on and phone["vpn_connected"]:
            self._leave_vpn()
        self._set("airplane_mode", on)

    def _leave_wifi(self) -> None:
        self._phone.update({"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"})

    def _join_vpn(self, performance: str) -> None:
        details = {"server_address": "192.168.1.1", "protocol": "OpenVPN", "server_performance": performance}
        self._phone.update({"vpn_connected": True, "vpn_details": details})

    def _leave_vpn(self) -> None:
        self._phone.update({"vpn_connected": False, "vpn_details": None})

    def _app(self, app_name: str) -> dict[str, Any]:
        app: dict[str, Any] | None = self._phone["app_statuses"].get(app_name)
        if app is None:
            raise ToolError(f"App '{app_name}' not found on this phone.")
        return app

    def _allowed(self, app_name: str) -> str:
        granted = [name for name, allowed in self._app(app_name)["permissions"].items() if allowed]
        return f"App '{app_name}' has permission for: {', '.join(granted) or 'nothing'}."

    def _permit(self, app_name: str, permission: str, allowed: bool) -> None:
        rights, permission = self._app(app_name)["permissions"], permission.lower()
        if permission not in PERMISSIONS:
            raise ToolError(f"Permission '{permission}' is unknown; expected {', '.join(PERMISSIONS)}")
        rights[permission] = allowed


def shown_switch(value: Any) -> str:
    """ON or OFF."""
    return "ON" if value else "OFF"
